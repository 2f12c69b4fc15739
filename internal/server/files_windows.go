package server

// maxFiles returns -1: Windows has no limit of descriptors.
func maxFiles() int64 { return -1 }
