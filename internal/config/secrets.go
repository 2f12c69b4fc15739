package config

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// secretFile is a file with a secret, and the key that names it.
type secretFile struct {
	key  string
	file string
	what string // what the file holds
}

// secretFiles returns the files that others must not read. The files of a family of TLS keys
// count only if a port uses the family.
func (l *loader) secretFiles() []secretFile {
	var files []secretFile
	add := func(key, what string) {
		if v, given := l.settings[key]; given {
			files = append(files, secretFile{key, v.value, what})
		}
	}
	add("sessionSecretFile", "the secret of the sessions")
	add("admin.tokenFile", "the tokens of operators")
	for _, f := range []struct {
		prefix string
		used   bool
	}{{"ssl.", l.c.TLS.ForClients()}, {"ssl.quorum.", l.c.TLS.ForServers() || l.c.Admin.TLS()}} {
		if f.used {
			add(f.prefix+"keyStore.location", "a private key")
			add(f.prefix+"keyStore.passwordPath", "a password")
			add(f.prefix+"trustStore.passwordPath", "a password")
		}
	}
	return append(files, l.loginFiles()...)
}

// loginFiles returns the JAAS file if it holds passwords, and the key tabs that it names.
func (l *loader) loginFiles() []secretFile {
	var files []secretFile
	file := l.c.SASL.JAAS
	if file == nil {
		return nil
	}
	for _, section := range file.Sections {
		login, err := section.Login()
		if err != nil {
			continue // the section may be for another program
		}
		if login.Digest != nil {
			files = append(files, secretFile{jaasKey, file.Name, "passwords"})
		}
		if k := login.Kerberos; k != nil && k.KeyTab != "" {
			files = append(files, secretFile{jaasKey, strings.TrimPrefix(k.KeyTab, "FILE:"), "keys of Kerberos"})
		}
	}
	return files
}

// warnSecrets warns once about each file with a secret that other users of the machine can read.
func (l *loader) warnSecrets() {
	seen := map[secretFile]bool{}
	for _, s := range l.secretFiles() {
		if text := readableByOthers(s.file, s.what); text != "" && !seen[s] {
			seen[s] = true
			l.warnIf(true, s.key, text)
		}
	}
}

// readableByOthers returns a warning about a file with a secret that its group or all users may read, or
// that is a directory, and "" for any other file. A file that cannot be examined causes no warning: its use
// fails with a better message.
func readableByOthers(file, what string) string {
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS == "windows" { // Windows has no such permissions
		return ""
	}
	if info.IsDir() {
		return fmt.Sprintf("names %s, which is a directory: name the file that holds %s", file, what)
	}
	who := ""
	switch mode := info.Mode().Perm(); {
	case mode&0o006 != 0:
		who = "every user of this machine"
	case mode&0o060 != 0:
		who = "its group"
	default:
		return ""
	}
	return fmt.Sprintf("names %s, which holds %s and can be read or changed by %s (mode %04o): let only the server's user read it, with chmod 600", file, what, who, info.Mode().Perm())
}
