package wire

import "strings"

// ValidPath reports whether a path follows the rules that servers enforce and clients
// check before they send. A path is "/", or begins with a slash, does not end with one,
// and has no component that is empty, "." or "..". It contains no control character,
// private-use character, surrogate, special (U+FFF0 to U+FFFF) or character outside the
// basic multilingual plane. For a sequential znode, pass the path with digits at its end.
func ValidPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for rest, more := path[1:], true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if name == "" || name == "." || name == ".." || !validName(name) {
			return false
		}
	}
	return true
}

// validName reports whether a path may contain every character of s.
func validName(s string) bool {
	for _, r := range s {
		switch {
		case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			return false // malformed UTF-8 reads as U+FFFD
		}
	}
	return true
}
