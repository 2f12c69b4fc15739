package tree

import (
	"strings"

	"bellwether/internal/quota"
)

// The paths that every tree has.
const (
	zookeeperPath = "/zookeeper"
	configPath    = "/zookeeper/config"
)

// PreferredLeaderPath is the znode whose data is the id of the server that should lead. It need not
// exist. It is below the configuration znode because clients that may not change the members may
// create nothing there. ZooKeeper's servers keep it like any znode and ignore it.
const PreferredLeaderPath = configPath + "/preferred-leader"

// reserved reports whether clients must not delete a path.
func reserved(path string) bool {
	return path == "/" || path == zookeeperPath || path == quota.Root || path == configPath
}

// splitPath splits a path at its last slash into the path of the parent ("" is the root)
// and the name. It returns false if there is no slash, or a NUL.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// canonical returns the path itself, but "/" for the root if it is given as "". Views and
// watches are stored under this spelling.
func canonical(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// outsideDigest reports whether a path is below /zookeeper, where servers may differ.
func outsideDigest(path string) bool { return strings.HasPrefix(path, zookeeperPath+"/") }
