package tree

import (
	"strings"

	"bellwether/internal/quota"
)

// The paths a tree is born with.
const (
	zookeeperPath = "/zookeeper"
	configPath    = "/zookeeper/config"
)

// reserved are the paths that no client deletes.
func reserved(path string) bool {
	return path == "/" || path == zookeeperPath || path == quota.Root || path == configPath
}

// splitPath cuts a path at its last slash: the parent as it is looked up
// ("" is the root) and the name. False where there is no slash or a NUL.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// canonical is the one spelling under which the root is kept.
func canonical(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// outsideDigest: everything below /zookeeper may differ between servers.
func outsideDigest(path string) bool { return strings.HasPrefix(path, zookeeperPath+"/") }
