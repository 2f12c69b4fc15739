package zk

import (
	"strings"
	"unicode/utf8"

	"bellwether/wire"
)

// systemPath is the subtree that no chroot hides.
const systemPath = "/zookeeper"

// configPath holds the ensemble's configuration.
const configPath = systemPath + "/config"

// validPath applies the servers' rules for paths. A sequential path may end
// in a slash, as digits follow.
func validPath(path string, sequential bool) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	if path[len(path)-1] == '/' && !sequential {
		return false
	}
	return validParts(path, sequential) && validText(path)
}

// validParts: no empty, "." or ".." component.
func validParts(path string, sequential bool) bool {
	for start := 1; start <= len(path); {
		end := len(path)
		if i := strings.IndexByte(path[start:], '/'); i >= 0 {
			end = start + i
		}
		last := end == len(path)
		if part := path[start:end]; !(last && sequential) && (part == "" || part == "." || part == "..") {
			return false
		}
		start = end + 1
	}
	return true
}

// validText: no control, private, surrogate or special characters, and
// nothing outside the basic plane.
func validText(path string) bool {
	plain := true
	for i := 0; i < len(path); i++ {
		plain = plain && path[i] >= 0x20 && path[i] < 0x7f
	}
	if plain {
		return true
	}
	for _, r := range path {
		switch {
		case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return false
		}
	}
	return utf8.ValidString(path)
}

// abs is the path as the server knows it, if it is one.
func (c *Client) abs(path string, sequential bool) (string, error) {
	if !validPath(path, sequential) {
		return "", wire.ErrBadArguments
	}
	return c.under(path), nil
}

// under puts a path below the chroot.
func (c *Client) under(path string) string {
	switch {
	case c.chroot == "":
		return path
	case path == "/":
		return c.chroot
	}
	return c.chroot + path
}

// rel is a server's path as the caller knows it. What is neither below the
// chroot nor a system path stays as it is.
func (c *Client) rel(path string) string {
	if c.chroot == "" || !strings.HasPrefix(path, c.chroot) {
		return path
	}
	switch rest := path[len(c.chroot):]; {
	case rest == "":
		return "/"
	case rest[0] == '/':
		return rest
	}
	return path
}

// parentOf is the path one level up; that of the root is empty.
func parentOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch {
	case path == "/" || i < 0:
		return ""
	case i == 0:
		return "/"
	}
	return path[:i]
}

// isBelow reports whether a server's path is the chroot or below it.
func (c *Client) isBelow(path string) bool {
	rest, ok := strings.CutPrefix(path, c.chroot)
	return ok && (rest == "" || rest[0] == '/')
}
