package config

import (
	"fmt"

	"bellwether/internal/sasl/jaas"
)

// QuorumSASL says how servers log in to each other.
type QuorumSASL struct {
	Enable          bool // other servers can log in to this one
	LearnerRequires bool // this server logs in to those to which it connects
	ServerRequires  bool // the server refuses servers that do not log in

	LearnerSection string // section of the JAAS file for logging in
	ServerSection  string // section of the JAAS file for accepting logins
	// ServicePrincipal is the Kerberos name of the servers to which this one logs in. The host
	// _HOST stands for the host of each.
	ServicePrincipal string
	FIPS             bool // this server does not log in by DIGEST-MD5

	// Learner and Server are what the two sections mean. They are nil if Enable is not set, or
	// if the server is standalone.
	Learner, Server *jaas.Login
}

// The keys that depend on each other: each needs the one before it.
const (
	enableSASL  = "quorum.auth.enableSasl"
	learnerSASL = "quorum.auth.learnerRequireSasl"
	serverSASL  = "quorum.auth.serverRequireSasl"
)

// checkQuorumSASL refuses the combinations that ZooKeeper refuses too: they would leave this
// server outside its ensemble, or less protected than the file suggests.
func (l *loader) checkQuorumSASL() {
	q := &l.c.SASL.Quorum
	for _, k := range []struct {
		name, needs string
		on, has     bool
	}{
		{learnerSASL, enableSASL, q.LearnerRequires, q.Enable},
		{serverSASL, enableSASL, q.ServerRequires, q.Enable},
		{serverSASL, learnerSASL, q.ServerRequires && q.Enable, q.LearnerRequires},
	} {
		if k.on && !k.has {
			l.failKey(k.name, "is true, but "+k.needs+" is not", "add a line "+k.needs+"=true, or remove this one")
		}
	}
}

// loadQuorumSASL finds the sections of the JAAS file for logins between servers.
func (l *loader) loadQuorumSASL() {
	q := &l.c.SASL.Quorum
	if !q.Enable || l.c.Standalone() {
		return
	}
	if l.c.SASL.JAAS == nil {
		l.failKey(enableSASL, "is true, but no JAAS file is named", "add -D"+jaasKey+"=FILE to SERVER_JVMFLAGS, in java.env or in the environment")
		return
	}
	const learner, server = "quorum.auth.learner.saslLoginContext", "quorum.auth.server.saslLoginContext"
	q.Learner = l.section(learner, q.LearnerSection)
	q.Server = l.section(server, q.ServerSection)
	if len(l.errs) > 0 {
		return
	}
	file := l.c.SASL.JAAS.Name
	if d := q.Learner.Digest; d != nil && d.Username == "" {
		l.failKey(learner, fmt.Sprintf("names the section %s of %s, which has no options username and password", q.LearnerSection, file), "add them")
	} else if d != nil && q.FIPS && q.LearnerRequires {
		l.failKey(learner, fmt.Sprintf("names the section %s of %s, which logs in by DIGEST-MD5, but fips-mode is true, as it is by default in ZooKeeper 3.9", q.LearnerSection, file),
			"add a line fips-mode=false, or use Kerberos")
	}
	if d := q.Server.Digest; d != nil && len(d.Users) == 0 {
		l.failKey(server, fmt.Sprintf("names the section %s of %s, which has no users", q.ServerSection, file), `add options user_NAME="PASSWORD"`)
	}
}

// section returns the meaning of the section of the JAAS file that a key names.
func (l *loader) section(name, section string) *jaas.Login {
	s, err := l.c.SASL.JAAS.Section(section)
	var login *jaas.Login
	if err == nil {
		login, err = s.Login()
	}
	if err != nil {
		l.failKey(name, fmt.Sprintf("names the section %s of the JAAS file, which cannot be used: %v", section, err), "correct the file or the name")
		return nil
	}
	for _, text := range login.Ignored {
		l.noticeIf(true, name, "names the section "+section+": "+text)
	}
	return login
}
