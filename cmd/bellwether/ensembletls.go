package main

import (
	"fmt"
	"path/filepath"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/ensemble"
	"bellwether/internal/local"
)

// useTLS makes the certificates of an ensemble on this machine, in the folder tls below its data, and adds the
// settings that use them. It returns the flags with which a client connects.
func useTLS(o *local.Options, data, host string) (access string, err error) {
	dir, err := filepath.Abs(filepath.Join(data, "tls"))
	if err != nil {
		return "", err
	}
	var hosts []string
	if !(ensemble.HostPort{Host: host}).IsWildcard() {
		hosts = append(hosts, host)
	}
	server := serverSubject("ensemble", hosts)
	client := authority.Subject{File: "client.pem", Name: "client"}
	if _, err := authority.Init(authority.Plan{Dir: dir, Subjects: []authority.Subject{server, client}, Now: time.Now()}); err != nil {
		return "", fmt.Errorf("certificates in %s: %w", dir, err)
	}
	o.Secure = true
	o.Settings = append(o.Settings, "sslQuorum=true")
	for _, family := range []string{"ssl.", "ssl.quorum."} {
		o.Settings = append(o.Settings,
			family+"keyStore.location="+filepath.Join(dir, server.File),
			family+"trustStore.location="+filepath.Join(dir, authority.CertFile))
	}
	at := func(name string) string { return filepath.Join(data, "tls", name) }
	return fmt.Sprintf(" --tls-ca %s --tls-cert %s", at(authority.CertFile), at(client.File)), nil
}
