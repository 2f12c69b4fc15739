package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestCClient runs the programs of c/ with Apache's C library, compiled as users would.
func TestCClient(t *testing.T) {
	t.Parallel()
	gcc := target.Tool(t, "gcc", "gcc")
	target.File(t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	bin := t.TempDir()
	for _, source := range glob(t, "c/*.c") {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		program := filepath.Join(bin, name)
		t.Run(name, func(t *testing.T) {
			target.Script{Args: []string{
				gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-DTHREADED",
				"-o", program, source, "-lzookeeper_mt", "-lpthread",
			}}.Pass(t)
			eachShared(t, func(t *testing.T, s *target.Server) {
				way := target.NewProxy(t, s.Addr)
				target.Script{
					Args:     []string{program, s.Addr, way.Addr, fresh("c-" + name)},
					Commands: proxyCommands(way),
				}.Pass(t)
			})
		})
	}
}
