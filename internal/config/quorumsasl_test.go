package config

import (
	"strings"
	"testing"
)

// The sections of a JAAS file that the tests use.
const (
	learnerSection = `QuorumLearner { org.apache.zookeeper.server.auth.DigestLoginModule required username="test" password="hush"; };` + "\n"
	serverSection  = `QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_test="hush"; };` + "\n"
	allSteps       = "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n"
)

// TestQuorumSASLIsRead shows the settings of logins between servers, and that a standalone
// server needs no sections.
func TestQuorumSASLIsRead(t *testing.T) {
	flag := "-D" + jaasKey + "=DIR/jaas.conf"
	c := load(t, flag, trio+allSteps+"fips-mode=false", "data/myid", "2\n", "jaas.conf", learnerSection+serverSection)
	q := c.SASL.Quorum
	if !q.Enable || !q.LearnerRequires || !q.ServerRequires || q.ServicePrincipal != "zkquorum/localhost" || q.FIPS {
		t.Errorf("%+v", q)
	}
	if q.Learner.Digest.Username != "test" || q.Learner.Digest.Password.Reveal() != "hush" || q.Server.Digest.Users["test"].Reveal() != "hush" {
		t.Error("the sections are not read")
	}
	other := strings.NewReplacer("QuorumLearner", "Own", "QuorumServer", "Others").Replace(learnerSection + serverSection)
	names := "quorum.auth.learner.saslLoginContext=Own\nquorum.auth.server.saslLoginContext=Others\nquorum.auth.kerberos.servicePrincipal=zk/_HOST\n"
	c = load(t, flag+" -Dzookeeper.fips-mode=false", trio+allSteps+names, "data/myid", "2\n", "jaas.conf", other)
	if q := c.SASL.Quorum; q.Learner == nil || q.Server == nil || q.ServicePrincipal != "zk/_HOST" {
		t.Errorf("%+v", q)
	}
	if c := load(t, "", "dataDir=/nonexistent\n"+allSteps); c.SASL.Quorum.Learner != nil {
		t.Error("a standalone server has logins between servers")
	}
	// fips-mode concerns only servers that log in.
	load(t, flag, trio+"quorum.auth.enableSasl=true", "data/myid", "2\n", "jaas.conf", learnerSection+serverSection)
}

// TestQuorumSASLIsRefused shows the combinations of keys and the JAAS files with which a server
// would stay outside its ensemble, or be less protected than its configuration suggests.
func TestQuorumSASLIsRefused(t *testing.T) {
	const both = learnerSection + serverSection
	flag := "-D" + jaasKey + "=DIR/jaas.conf"
	for _, x := range []struct{ flags, lines, jaas, want string }{
		{flag, "quorum.auth.learnerRequireSasl=true", both, "quorum.auth.learnerRequireSasl=true is true, but quorum.auth.enableSasl is not; add a line quorum.auth.enableSasl=true"},
		{flag, "quorum.auth.serverRequireSasl=true", both, "quorum.auth.serverRequireSasl=true is true, but quorum.auth.enableSasl is not"},
		{flag, "quorum.auth.enableSasl=true\nquorum.auth.serverRequireSasl=true", both, "is true, but quorum.auth.learnerRequireSasl is not"},
		{flag, "quorum.auth.enableSasl=yes", both, "allowed is true or false"},
		{"", allSteps, both, "quorum.auth.enableSasl=true is true, but no JAAS file is named; add -D" + jaasKey + "=FILE to SERVER_JVMFLAGS"},
		{flag, allSteps, learnerSection, "jaas.conf has no section QuorumServer (it has: QuorumLearner)"},
		{flag, allSteps, serverSection, "jaas.conf has no section QuorumLearner"},
		{flag, allSteps + "quorum.auth.server.saslLoginContext=Other", both, "quorum.auth.server.saslLoginContext=Other names the section Other"},
		{flag, allSteps, both, "which logs in by DIGEST-MD5, but fips-mode is true, as it is by default in ZooKeeper 3.9; add a line fips-mode=false"},
		{flag, allSteps + "fips-mode=false", strings.Replace(both, `user_test="hush"`, `username="a" password="hush"`, 1), "which has no users"},
		{flag, allSteps + "fips-mode=false", strings.Replace(both, `username="test" password="hush"`, `user_a="hush"`, 1), "which has no options username and password"},
		{flag, allSteps, strings.ReplaceAll(both, "org.apache.zookeeper.server.auth.DigestLoginModule", "com.ibm.Module"), "com.ibm.Module is not supported"},
	} {
		got := refuse(t, x.flags, trio+x.lines, "data/myid", "2\n", "jaas.conf", x.jaas)
		if !strings.Contains(got, x.want) || strings.Contains(got, "hush") {
			t.Errorf("%s:\n got %s\nwant %s", x.lines, got, x.want)
		}
	}
}
