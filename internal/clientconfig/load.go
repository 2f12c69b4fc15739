package clientconfig

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/zk"
)

// fileMax is the largest client configuration or password file, in bytes.
const fileMax = 1 << 20

// Config says how to connect. A nil Config means without TLS and without a login.
type Config struct {
	// Notices say where a setting has no effect and the connection is therefore less secure
	// than the user may expect.
	Notices []string
	// Warn is called if certificate files have changed and cannot be used; nil: no call.
	Warn func(text string)

	tls   *encryption  // nil: without TLS
	login zk.Mechanism // nil: none
	close func()       // ends the login; nil: nothing to do
}

// Load decides how to connect. flag returns the value of a flag, and whether it was given.
// env returns the value of an environment variable, empty if it is not set.
func Load(flag func(name string) (string, bool), env func(name string) string) (*Config, error) {
	g := gathered{}
	if err := g.addSettings(flag, env); err != nil {
		return nil, err
	}
	g.addJVMFlags(env)
	c := &Config{}
	if file, ok := g[flagFile]; ok {
		if err := c.addFile(g, file); err != nil {
			return nil, err
		}
	}
	if err := c.loadTLS(g); err != nil {
		return nil, err
	}
	return c, c.loadLogin(g, env)
}

// addFile adds the properties of a client configuration file.
func (c *Config) addFile(g gathered, file value) error {
	text, err := readFile(file.text)
	if err != nil {
		return fmt.Errorf("%s: %w", file.from, err)
	}
	properties, err := ensemble.ReadProperties(ensemble.Latin1(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file.text, err)
	}
	for _, p := range properties {
		from := fmt.Sprintf("%s line %d", file.text, p.Line)
		g.add(p.Key, value{p.Value, fromFile, from})
		if strings.HasPrefix(p.Key, "ssl.") || p.Key == "client.secure" || strings.HasPrefix(p.Key, "sasl.") {
			c.notice("%s: %s has no effect: the property is zookeeper.%s", from, p.Key, p.Key)
		}
	}
	return nil
}

func (c *Config) notice(format string, args ...any) {
	c.Notices = append(c.Notices, fmt.Sprintf(format, args...))
}

// warnReadable adds a notice if all users of the machine can read a file with a secret.
func (c *Config) warnReadable(file, what string) {
	info, err := os.Stat(file)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 { // Windows has no such permissions
		c.notice("%s holds %s, and every user of this machine can read it: chmod 600 %s", file, what, file)
	}
}

// readFile reads a small file.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileMax {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", name, info.Size(), fileMax)
	}
	return os.ReadFile(name)
}

// readPassword reads a file that holds a password. A line feed at its end does not belong to
// the password.
func (c *Config) readPassword(from value) (string, error) {
	c.warnReadable(from.text, "a password")
	text, err := readFile(from.text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from.from, err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if password == "" {
		return "", fmt.Errorf("%s: %s is empty", from.from, from.text)
	}
	return password, nil
}

// Apply sets TLS and the login in the options of a client.
func (c *Config) Apply(o *zk.Options) {
	if c == nil {
		return
	}
	o.SASL = c.login
	if c.tls != nil {
		o.TLSConfig = c.configFor
	}
}

// UsesTLS reports whether connections use TLS.
func (c *Config) UsesTLS() bool { return c != nil && c.tls != nil }

// LogsIn reports whether sessions log in with SASL.
func (c *Config) LogsIn() bool { return c != nil && c.login != nil }

// Close ends the login.
func (c *Config) Close() {
	if c != nil && c.close != nil {
		c.close()
	}
}
