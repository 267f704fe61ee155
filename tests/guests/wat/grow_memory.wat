;; Grows its memory in configure by 16 MiB at a time until the host refuses, and logs a line for each 256 MiB.
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "| grow_memory")
  (func $say (drop (call $log (i32.const 2) (i32.const 0) (i32.const 13))))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 65536))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
  (data (i32.const 64) "| refused")
  (func (export "proxy_on_configure") (param i32 i32) (result i32)
    (local $grown i32)
    (loop $more
      (if (i32.ne (memory.grow (i32.const 256)) (i32.const -1))
        (then
          (local.set $grown (i32.add (local.get $grown) (i32.const 1)))
          (if (i32.eqz (i32.and (local.get $grown) (i32.const 15))) (then (call $say)))
          (br $more))))
    (drop (call $log (i32.const 2) (i32.const 64) (i32.const 9)))
    (i32.const 1))
)
