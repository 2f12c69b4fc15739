package zk

import (
	"strings"

	"bellwether/wire"
)

// systemPath is the subtree that every client sees, whatever its chroot is.
const systemPath = "/zookeeper"

// configPath is the znode that holds the ensemble's configuration.
const configPath = systemPath + "/config"

// validPath reports whether a request may contain the path. For a sequential create it
// checks the path with a digit at the end, because the server appends digits.
func validPath(path string, sequential bool) bool {
	if sequential {
		path += "0"
	}
	return wire.ValidPath(path)
}

// abs returns the path as the server knows it, if it is valid.
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

// rel returns a server's path as the caller knows it. A path that is neither below the
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

// parentOf returns the path one level up; for the root it is empty.
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
