package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/sasl/kerberos"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
	login "bellwether/zk/kerberos"
)

const zookeeperPrincipal = "zookeeper/localhost"

// service accepts logins to zookeeper/localhost.
func (k *kdc) service(t *testing.T, keytab string) *kerberos.Service {
	t.Helper()
	s, err := kerberos.NewService(zookeeperPrincipal+"@"+kdcRealm, keytab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (k *kdc) login(t *testing.T, c kerberos.Config) *kerberos.Login {
	t.Helper()
	c.Conf = k.conf
	l, err := kerberos.NewLogin(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// acceptLogin plays an exchange with a service to its end and returns the id of the client.
func acceptLogin(x sasl.Exchange, s *kerberos.Service) (string, error) {
	a, err := s.Accept((&sasl.Naming{DefaultRealm: kdcRealm}).Authorize)
	if err != nil {
		return "", err
	}
	token, _, err := x.Step(nil)
	for err == nil {
		var answer []byte
		var done bool
		if answer, done, err = a.Step(token); err != nil || done {
			return a.AuthorizationID(), err
		}
		token, _, err = x.Step(answer)
	}
	return "", err
}

// beginLogin begins an exchange with a service.
func beginLogin(t *testing.T, l *kerberos.Login, service string) sasl.Exchange {
	t.Helper()
	x, err := l.Begin(service)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestKerberosBothEnds: with tickets of MIT's KDC both ends agree, for each type of key.
func TestKerberosBothEnds(t *testing.T) {
	k := startKDC(t)
	for i, encryption := range []string{"aes256-cts:normal", "aes128-cts:normal", "aes256-sha2:normal", "aes128-sha2:normal"} {
		service := fmt.Sprintf("zookeeper/host%d", i)
		client := fmt.Sprintf("bob%d", i)
		s, err := kerberos.NewService(service+"@"+kdcRealm, k.keytab(t, service, encryption, ""))
		if err != nil {
			t.Fatal(err)
		}
		l := k.login(t, kerberos.Config{Principal: client, KeyTab: k.keytab(t, client, encryption, "")})
		for _, name := range []string{service, service + "@" + kdcRealm} {
			if id, err := acceptLogin(beginLogin(t, l, name), s); id != client+"@"+kdcRealm || err != nil {
				t.Errorf("%s, %s: %q, %v", encryption, name, id, err)
			}
		}
		if _, err := l.Begin("zookeeper/nowhere"); err == nil || !strings.Contains(err.Error(), "no ticket of "+client+"@EXAMPLE.COM for zookeeper/nowhere@EXAMPLE.COM: the KDC does not know the service") {
			t.Errorf("a service that the KDC does not know: %v", err)
		}
	}
	if realm, err := kerberos.DefaultRealm(k.conf); realm != kdcRealm || err != nil {
		t.Errorf("%q, %v", realm, err)
	}
}

// TestKerberosJavaClient: a service accepts Java's client, with and without a proof that Java asks
// for, and with the id that Java's client of ZooKeeper names.
func TestKerberosJavaClient(t *testing.T) {
	javac, java := target.Tool(t, "javac", "default-jdk-headless"), target.Tool(t, "java", "default-jdk-headless")
	classes := t.TempDir()
	target.Script{Args: []string{javac, "-Xlint:all", "-Xlint:-removal", "-Werror", "-proc:none", "-d", classes, "kerberos/Initiator.java"}}.Pass(t)
	k := startKDC(t)
	s := k.service(t, k.keytab(t, zookeeperPrincipal, "", ""))
	config := k.jaas(t, "Client", "bob", k.keytab(t, "bob", "", ""))
	for _, prove := range []string{"false", "true"} {
		for _, wanted := range []string{"-", "bob@" + kdcRealm} {
			t.Run("proof "+prove+" as "+wanted, func(t *testing.T) {
				a, err := s.Accept((&sasl.Naming{DefaultRealm: kdcRealm}).Authorize)
				if err != nil {
					t.Fatal(err)
				}
				args := append([]string{java}, target.JVM...)
				args = append(args, "-Djava.security.krb5.conf="+k.conf, "-Djava.security.auth.login.config="+config,
					"-cp", classes, "Initiator", "Client", "zookeeper", "localhost", wanted, prove)
				if err := acceptProcess(t, a, args...); a.AuthorizationID() != "bob@"+kdcRealm || err != nil {
					t.Errorf("%q, %v", a.AuthorizationID(), err)
				}
			})
		}
	}
}

// jaas writes a JAAS file with one section for Kerberos.
func (k *kdc) jaas(t *testing.T, section, principal, keytab string) string {
	t.Helper()
	return k.write(t, section+".jaas", "%s {\n  %s required\n  useKeyTab=true\n  keyTab=%q\n  storeKey=true\n  principal=%q;\n};\n",
		section, jaas.KerberosModule, keytab, principal+"@"+kdcRealm)
}

// TestKerberosAtApache: package zk logs in at a ZooKeeper server by Kerberos and gets the znodes of its
// id. The server's principal follows from its address, 127.0.0.1, as in ZooKeeper's client.
func TestKerberosAtApache(t *testing.T) {
	k := startKDC(t)
	server := k.jaas(t, "Server", zookeeperPrincipal, k.keytab(t, zookeeperPrincipal, "", ""))
	s := target.StartFor(t, target.Apache, target.Options{
		JVM:   append([]string{"-Djava.security.auth.login.config=" + server, "-Djava.security.krb5.conf=" + k.conf}, target.JVM...),
		Extra: map[string]string{"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
	})
	l, err := login.New(login.Options{Conf: k.conf, Principal: "bob", KeyTab: k.keytab(t, "bob", "", "")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)

	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	open := func(opt *zk.Options) *zk.Client {
		c, err := zk.Connect(ctx, s.Addr, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	bob := open(&zk.Options{SASL: l.Begin})
	own := zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "sasl", ID: "bob@" + kdcRealm}}}
	if _, _, err := bob.Create(ctx, "/bobs", []byte("x"), own); err != nil {
		t.Fatal(err)
	}
	if data, _, err := bob.Get(ctx, "/bobs"); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, _, err := open(&zk.Options{}).Get(ctx, "/bobs"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("without a login: %v", err)
	}
}

// TestKerberosTicketsEnd: a login with a ticket cache ends with its ticket, unless the ticket is
// renewable, and works again when the cache has a new one. A login with a keytab gets a new ticket by
// itself.
func TestKerberosTicketsEnd(t *testing.T) {
	k := startKDC(t)
	s := k.service(t, k.keytab(t, zookeeperPrincipal, "", ""))
	for i := range 2 {
		k.keytab(t, fmt.Sprintf("other/host%d", i), "", "")
	}
	keytab := k.keytab(t, "bob", "", "-maxlife 3s -maxrenewlife 0s")
	renewable := k.login(t, kerberos.Config{TicketCache: k.cache(t, "alice", k.keytab(t, "alice", "", "-maxlife 3s"), "-r", "1h")})
	if _, err := renewable.Begin(zookeeperPrincipal); err != nil {
		t.Fatal(err)
	}
	cached := k.login(t, kerberos.Config{TicketCache: k.cache(t, "bob", keytab)})
	renewed := k.login(t, kerberos.Config{Principal: "bob", KeyTab: keytab})
	for _, l := range []*kerberos.Login{cached, renewed} {
		if id, err := acceptLogin(beginLogin(t, l, zookeeperPrincipal), s); id != "bob@"+kdcRealm || err != nil {
			t.Fatalf("%q, %v", id, err)
		}
	}
	for deadline := time.Now().Add(electionWait); ; time.Sleep(100 * time.Millisecond) {
		if _, err := cached.Begin("other/host0"); err != nil {
			if !strings.Contains(err.Error(), "the ticket has expired: run kinit again") {
				t.Error(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an expired ticket of a cache still works")
		}
	}
	if _, err := renewed.Begin("other/host1"); err != nil {
		t.Errorf("a login with a keytab ends with its ticket: %v", err)
	}
	if _, err := renewable.Begin("other/host1"); err != nil {
		t.Errorf("a renewable ticket of a cache is not renewed: %v", err)
	}
	k.cache(t, "bob", keytab)
	if id, err := acceptLogin(beginLogin(t, cached, zookeeperPrincipal), s); id != "bob@"+kdcRealm || err != nil {
		t.Errorf("with a new ticket in the cache: %q, %v", id, err)
	}
	if err := os.Remove(keytab); err != nil {
		t.Fatal(err)
	}
	if _, err := renewed.Begin("other/host0"); err != nil {
		t.Errorf("without the keytab that was read before: %v", err)
	}
	if _, err := renewed.Begin("other/nobody"); err == nil || !strings.Contains(err.Error(), "no ticket of bob@EXAMPLE.COM") || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("both reasons should be there: %v", err)
	}
}

// TestKerberosRefusals: an error says what is wrong with a login, whether package kerberos finds it before
// it asks the KDC, or the KDC refuses the request.
func TestKerberosRefusals(t *testing.T) {
	k := startKDC(t)
	keytab := k.keytab(t, "bob", "", "")
	cache := k.cache(t, "bob", keytab)
	for name, x := range map[string]struct {
		config kerberos.Config
		want   string
	}{
		"neither":         {kerberos.Config{Conf: k.conf, Principal: "bob"}, "either a keytab or a ticket cache"},
		"no conf":         {kerberos.Config{Conf: k.file("none"), Principal: "bob", KeyTab: keytab}, "the configuration of Kerberos, " + k.file("none")},
		"no keytab":       {kerberos.Config{Conf: k.conf, Principal: "bob", KeyTab: k.file("none")}, "no such file"},
		"no cache":        {kerberos.Config{Conf: k.conf, TicketCache: k.file("none")}, "no such file"},
		"not in keytab":   {kerberos.Config{Conf: k.conf, Principal: "alice", KeyTab: keytab}, "has no AES key of alice@EXAMPLE.COM; it has: bob@EXAMPLE.COM"},
		"another's cache": {kerberos.Config{Conf: k.conf, Principal: "alice", TicketCache: cache}, "the ticket cache belongs to bob@EXAMPLE.COM, not to alice@EXAMPLE.COM"},
		"not a cache":     {kerberos.Config{Conf: k.conf, TicketCache: keytab}, "ticket cache " + keytab},
	} {
		if _, err := kerberos.NewLogin(x.config); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := k.login(t, kerberos.Config{Principal: "bob", KeyTab: keytab})
	if _, err := l.Begin("zookeeper"); err == nil || !strings.Contains(err.Error(), "expected service/host") {
		t.Error(err)
	}
	k.run(t, "/usr/sbin/kadmin.local", "-r", kdcRealm, "-q", "cpw -randkey bob")
	if _, err := l.Begin(zookeeperPrincipal); err == nil || !strings.Contains(err.Error(), "no ticket of bob@EXAMPLE.COM for zookeeper/localhost@EXAMPLE.COM: the KDC has another key of the client") {
		t.Errorf("with an old key: %v", err)
	}
}
