package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
)

// JVMFlags returns the flags that ZooKeeper's start script would give to Java for the
// configuration file at path: SERVER_JVMFLAGS and JVMFLAGS of env, as changed by the file
// java.env next to the configuration file, and the flag for
// ZOO_DATADIR_AUTOCREATE_DISABLE. A missing java.env is not an error.
func JVMFlags(path string, env map[string]string) (string, error) {
	file := filepath.Join(filepath.Dir(path), "java.env")
	text, err := readFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("environment file: %w", err)
	}
	vars := assignments(string(text), env)
	flags := []string{}
	if vars["ZOO_DATADIR_AUTOCREATE_DISABLE"] != "" {
		flags = append(flags, "-Dzookeeper.datadir.autocreate=false")
	}
	for _, name := range []string{"SERVER_JVMFLAGS", "JVMFLAGS"} {
		if vars[name] != "" {
			flags = append(flags, vars[name])
		}
	}
	return strings.Join(flags, " "), nil
}

// EnvironmentFile returns env as changed by the simple assignments of a shell script, such as
// ZooKeeper's zookeeper-env.sh.
func EnvironmentFile(path string, env map[string]string) (map[string]string, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("environment file: %w", err)
	}
	return assignments(string(text), env), nil
}

// assignments applies the simple assignments of a shell script (NAME=value with or
// without export and quotes) to a copy of env. It skips all other lines.
func assignments(script string, env map[string]string) map[string]string {
	vars := maps.Clone(env)
	if vars == nil {
		vars = make(map[string]string)
	}
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", "")) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(strings.TrimLeft(line, " \t"), "=")
		if ok && isShellName(name) {
			vars[name] = shellWord(value, vars)
		}
	}
	return vars
}

func isShellName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// shellWord returns the first word of s as a shell reads it: without quotes, and with
// $NAME and ${NAME} replaced except between single quotes.
func shellWord(s string, vars map[string]string) string {
	var word strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ' ' || c == '\t' || c == ';' || c == '#' && word.Len() == 0):
			return word.String()
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
		case c == '$' && quote != '\'':
			value, n := expand(s[i:], vars)
			word.WriteString(value)
			i += n - 1
		default:
			word.WriteByte(c)
		}
	}
	return word.String()
}

// expand returns the value of the variable reference at the beginning of s and the
// length of the reference. A dollar sign without a valid name after it is returned unchanged.
func expand(s string, vars map[string]string) (string, int) {
	if rest, ok := strings.CutPrefix(s, "${"); ok {
		if name, _, closed := strings.Cut(rest, "}"); closed && isShellName(name) {
			return vars[name], len(name) + 3
		}
		return "$", 1
	}
	end := 1
	for end < len(s) && isShellName(s[1:end+1]) {
		end++
	}
	if end == 1 {
		return "$", 1
	}
	return vars[s[1:end]], end
}
