package interop

import (
	"os"
	"testing"
	"time"

	"bellwether/interop/target"
)

// TestNodeClient runs node-zookeeper-client in the versions of node/package-lock.json.
func TestNodeClient(t *testing.T) {
	node := target.Tool(t, "node", "nodejs")
	installPackages(t)
	eachShared(t, func(t *testing.T, s *target.Server) {
		way := target.NewProxy(t, s.Addr)
		target.Script{
			Args:     []string{node, "client.js", s.Addr, way.Addr, fresh("node")},
			Dir:      "node",
			Commands: proxyCommands(way),
		}.Pass(t)
	})
}

// installPackages installs the packages of the lock file in node/node_modules, unless an
// earlier run has done so.
func installPackages(t *testing.T) {
	lock, err := os.Stat("node/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	done, err := os.Stat("node/node_modules/.package-lock.json")
	if err == nil && !done.ModTime().Before(lock.ModTime()) {
		return
	}
	target.Script{
		Args:    []string{target.Tool(t, "npm", "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"},
		Dir:     "node",
		Timeout: 10 * time.Minute,
	}.Pass(t)
}
