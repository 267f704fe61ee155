;; Only the marker and memory: no allocator, no callback.
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "| bare")
  (func $say (drop (call $log (i32.const 2) (i32.const 0) (i32.const 6))))
  (func (export "proxy_abi_version_0_2_1"))
)
