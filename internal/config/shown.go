package config

import (
	"maps"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// hidden stands for a secret in a text that everybody may see.
const hidden = "(hidden)"

// Text returns the text of the configuration file as it was read, for operators. Passwords and
// the like are hidden.
func (c *Config) Text() string { return c.text }

// Properties returns the settings that were given, except server lines, under the names of the
// Java properties that ZooKeeper would set, sorted by name. Passwords and the like are
// hidden.
func (c *Config) Properties() [][2]string {
	var all [][2]string
	for _, name := range slices.Sorted(maps.Keys(c.given)) {
		k := find(name)
		if k == nil || k.kind&(system|java|unprefix) == 0 {
			continue
		}
		value := c.given[name]
		if isSecret(name) {
			value = hidden
		}
		if k.kind&java == 0 {
			name = "zookeeper." + name
		}
		all = append(all, [2]string{name, value})
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return all
}

// isSecret reports whether the value of a key is a secret. A key that this version does not
// know counts as one if its name says so.
func isSecret(name string) bool {
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, "path") || strings.HasSuffix(lower, "file") {
		return false // the name of a file with a secret
	}
	for _, word := range []string{"password", "passwd", "digest", "secret", "token"} {
		if strings.Contains(lower, word) && !strings.HasSuffix(lower, "enabled") && !strings.HasSuffix(lower, "digestalg") && !strings.HasPrefix(lower, "connection") {
			return true
		}
	}
	return false
}

// withoutSecrets returns the text of a properties file with hidden values in place of secrets.
func withoutSecrets(text string) string {
	var b strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); {
		n := 1 // natural lines of the logical line
		for isContinued(lines[i+n-1], n > 1) && i+n < len(lines) {
			n++
		}
		logical := strings.Join(lines[i:i+n], "")
		i += n
		props, err := ensemble.ReadProperties(logical)
		if err == nil && len(props) == 1 && isSecret(props[0].Key) {
			b.WriteString(props[0].Key + "=" + hidden + "\n")
			continue
		}
		b.WriteString(logical)
	}
	return b.String()
}

// isContinued reports whether a line continues on the next one, because it ends with an odd number of
// backslashes. A comment does not continue. within says that the line continues the one before it: then it is
// no comment, even if it begins like one.
func isContinued(line string, within bool) bool {
	line = strings.TrimRight(line, "\r\n")
	if first := strings.TrimLeft(line, " \t\f"); !within && (strings.HasPrefix(first, "#") || strings.HasPrefix(first, "!")) {
		return false
	}
	slashes := len(line) - len(strings.TrimRight(line, `\`))
	return slashes%2 == 1
}
