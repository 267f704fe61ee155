;; A trap in the start function of the module itself.
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "| trap_in_start_section")
  (func $say (drop (call $log (i32.const 2) (i32.const 0) (i32.const 23))))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 65536))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
  (func (export "proxy_on_configure") (param i32 i32) (result i32) (call $say) (i32.const 1))
  (func $first (unreachable))
  (start $first)
)
