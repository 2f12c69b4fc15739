package config

import (
	"os"
	"strings"

	"bellwether/internal/sasl/jaas"
)

// jaasKey names the JAAS file. It can only be given as a -D flag.
const jaasKey = "java.security.auth.login.config"

// loadJAAS reads the JAAS file, if one is named.
func (l *loader) loadJAAS() {
	v, given := l.settings[jaasKey]
	if !given {
		return
	}
	if err := l.readJAAS(v.value); err != nil {
		l.failKey(jaasKey, "cannot be used: "+err.Error(), "correct the file, or remove the flag to run without SASL")
	}
}

// readJAAS reads the JAAS file that a value of jaasKey names.
func (l *loader) readJAAS(value string) error {
	path, err := jaas.Path(value, l.property)
	if err != nil {
		return err
	}
	text, err := readFile(path)
	if err != nil {
		return err
	}
	l.c.SASL.JAAS, err = jaas.Parse(path, text, l.property)
	return err
}

// property returns the value of a Java property, for ${...} in a JAAS file. The property is set by a key of
// zoo.cfg (under the name zookeeper.<key>) or by a -D flag, or it is user.home.
func (l *loader) property(name string) (string, bool) {
	if key, ok := strings.CutPrefix(name, "zookeeper."); ok {
		if v, given := l.settings[key]; given && v.key.kind&system != 0 {
			return v.value, true
		}
	}
	if value, ok := l.flags[name]; ok {
		return value, true
	}
	if home, err := os.UserHomeDir(); name == "user.home" && err == nil {
		return home, true
	}
	return "", false
}
