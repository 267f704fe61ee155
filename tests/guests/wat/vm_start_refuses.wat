;; vm_start returns 0.
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "| vm_start_refuses")
  (func $say (drop (call $log (i32.const 2) (i32.const 0) (i32.const 18))))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 65536))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (call $say) (i32.const 0))
  (func (export "proxy_on_configure") (param i32 i32) (result i32) (call $say) (i32.const 1))
)
