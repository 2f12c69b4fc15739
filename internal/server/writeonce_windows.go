package server

import "syscall"

// writeSocket is not called: rawConn offers no socket here.
func writeSocket(uintptr, []byte) (int, error) { return 0, syscall.EWINDOWS }
