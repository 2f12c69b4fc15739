package main

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"bellwether/internal/store"
	tty "bellwether/internal/terminal"
)

// readBar shows how much of some files a command has read.
type readBar struct {
	*tty.Bar
	read  atomic.Int64
	total int64
}

// newReadBar returns a bar for the files that match patterns. It shows nothing with JSON, or if standard error is not
// a terminal.
func newReadBar(what string, json bool, patterns ...string) *readBar {
	b := &readBar{}
	if !json {
		b.Bar = tty.NewBar(os.Stderr, what)
	}
	for _, p := range patterns {
		files, _ := filepath.Glob(p) // a pattern that is malformed matches nothing
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				b.total += info.Size()
			}
		}
	}
	return b
}

// fs returns the file system in which the bar counts what is read.
func (b *readBar) fs() store.FS {
	return store.CountReads(store.OS(), func(n int64) { b.Set(min(b.read.Add(n), b.total), b.total) })
}
