package server

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryOfTheMachineOrItsControlGroup: the memory that a server may use is that of
// the machine, or the smallest limit of the process's control groups and their parents.
func TestMemoryOfTheMachineOrItsControlGroup(t *testing.T) {
	const machine = "MemFree: 1 kB\nMemTotal:        8388608 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":     {nil, 0},
		"no groups":            {map[string]string{"proc/meminfo": machine}, 8 << 30},
		"no limit":             {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 8 << 30},
		"its own group":        {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/memory.max": "2000\n"}, 1000},
		"a group above":        {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "3000\n", "sys/fs/cgroup/a/memory.max": "2000\n"}, 2000},
		"in a container":       {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/../../b\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"version 1":            {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "3:cpu,memory:/a\n2:cpuset:/c\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000\n"}, 1000},
		"version 1, unlimited": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "3:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
		"garbage":              {map[string]string{"proc/meminfo": "MemTotal: lots\n", "proc/self/cgroup": "::\n:\n0::\n", "sys/fs/cgroup/memory.max": "-5"}, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryBelow(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
