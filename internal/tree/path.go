package tree

import (
	"strings"
	"unicode/utf8"
)

// The paths a tree is born with.
const (
	zookeeperPath = "/zookeeper"
	quotaPath     = "/zookeeper/quota"
	configPath    = "/zookeeper/config"
)

// reserved are the paths that no client deletes.
func reserved(path string) bool {
	return path == "/" || path == zookeeperPath || path == quotaPath || path == configPath
}

// validPath checks the full rules of a path: it begins with a slash, ends
// with none, has no empty component, none that is "." or "..", and no
// character that ZooKeeper refuses.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for rest := path[1:]; ; {
		name, more, found := strings.Cut(rest, "/")
		if name == "" || name == "." || name == ".." {
			return false
		}
		if !found {
			break
		}
		rest = more
	}
	return validText(path)
}

// validText refuses control characters, surrogates and private-use
// characters, the specials, and all beyond the basic plane.
func validText(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return false
		}
		i += n
	}
	return true
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
