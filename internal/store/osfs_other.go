//go:build !linux

package store

import "os"

func allocate(f *os.File, size int64) error { return grow(f, size) }
func dataSync(f *os.File) error             { return f.Sync() }
