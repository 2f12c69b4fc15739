package server

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"bellwether/internal/config"
	"bellwether/internal/replica"
)

// The limits of a file with session secrets.
const (
	secretFileMax = 1 << 16
	secretMin     = 32 // characters of a secret: 128 bits in hex
	secretsMax    = 8
)

// checksumLine is the line that stands for ZooKeeper's checksum.
const checksumLine = "zookeeper"

// readSecrets reads the secrets of a configuration; nil: it names no file.
func readSecrets(c *config.Config) (replica.Secrets, error) {
	name := c.Access.SessionSecretFile
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("sessionSecretFile: %w: correct sessionSecretFile, or let the server's user read the file", err)
	}
	if info.Size() > secretFileMax {
		return nil, fmt.Errorf("sessionSecretFile %s has %d bytes, the limit is %d: is it another file?", name, info.Size(), secretFileMax)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("sessionSecretFile: %w: correct sessionSecretFile, or let the server's user read the file", err)
	}
	secrets, err := parseSecrets(b)
	if err != nil {
		return nil, fmt.Errorf("sessionSecretFile %s: %w", name, err)
	}
	return secrets, nil
}

// parseSecrets reads one secret from each line. Empty lines and those that begin with # are
// skipped. Errors name lines, never a secret.
func parseSecrets(b []byte) (replica.Secrets, error) {
	var secrets replica.Secrets
	seen := map[string]int{}
	for i, line := range bytes.Split(b, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		n := i + 1
		switch {
		case seen[text] != 0:
			return nil, fmt.Errorf("line %d repeats line %d: remove one", n, seen[text])
		case text != checksumLine && len(text) < secretMin:
			return nil, fmt.Errorf("the secret on line %d has %d characters, at least %d are needed: make one with openssl rand -hex 32", n, len(text), secretMin)
		case len(secrets) == secretsMax:
			return nil, fmt.Errorf("line %d is secret number %d, the limit is %d: remove those that no session uses any more", n, len(secrets)+1, secretsMax)
		}
		seen[text] = n
		if text == checksumLine {
			text = ""
		}
		secrets = append(secrets, replica.Secret{Key: text})
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("there is no secret in it: write one line, made with openssl rand -hex 32")
	}
	return secrets, nil
}

// reloadSecrets reads the secrets again. If they cannot be read, the old ones stay in use.
func (s *Server) reloadSecrets(c *config.Config) {
	secrets, err := readSecrets(c)
	if err != nil {
		s.log.Error("the session secrets are not replaced; the old ones stay in use", "err", err)
		return
	}
	if secrets != nil {
		s.inbox.ask(func(l *loop) { l.replica.SetSecrets(secrets) })
		s.log.Info("session secrets were read", "secrets", len(secrets))
	}
}
