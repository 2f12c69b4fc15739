package server

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// machineMemory returns how many bytes of memory the process may use: the memory of the
// machine, or the smallest limit of the process's control groups. It returns 0 if that is
// unknown.
func machineMemory() int64 { return memoryBelow("/") }

// memoryBelow is like machineMemory, but for the system files below a root folder.
func memoryBelow(root string) int64 {
	memory := memTotal(path.Join(root, "proc/meminfo"))
	for _, file := range groupLimits(root) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // not all versions of control groups exist everywhere
		}
		// The text "max", or a number above all memory, means no limit.
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && (memory == 0 || n < memory) {
			memory = n
		}
	}
	return memory
}

// memTotal reads the memory of the machine; 0 if the file does not contain it.
func memTotal(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// groupLimits lists the files with the limits of the process's control groups and their
// parents, for both versions of control groups. In a container the groups may be mounted
// as if they were at the top.
func groupLimits(root string) (files []string) {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	add := func(mount, file, group string) {
		for ; ; group = path.Dir(group) {
			files = append(files, path.Join(root, mount, group, file))
			if group == "/" || group == "." {
				return
			}
		}
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		// The line has the form id:controllers:group.
		parts := strings.SplitN(s.Text(), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "":
			add("sys/fs/cgroup", "memory.max", path.Clean("/"+parts[2]))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			add("sys/fs/cgroup/memory", "memory.limit_in_bytes", path.Clean("/"+parts[2]))
		}
	}
	return files
}
