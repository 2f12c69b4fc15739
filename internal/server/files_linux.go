package server

import (
	"os"
	"syscall"
)

// openFiles returns how many descriptors the process has open; -1 if that is unknown.
func openFiles() int64 {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return -1
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return -1
	}
	return int64(len(names)) - 1 // d itself
}

// spaceOf returns the space of the file system that holds a folder.
func spaceOf(dir string) diskSpace {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return spaceUnknown
	}
	block := float64(fs.Bsize)
	return diskSpace{free: float64(fs.Bavail) * block, size: float64(fs.Blocks) * block}
}
