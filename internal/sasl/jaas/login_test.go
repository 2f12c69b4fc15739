package jaas

import (
	"reflect"
	"strings"
	"testing"
)

func section(t *testing.T, text string) *Section {
	t.Helper()
	f, err := Parse("f", []byte("S {\n"+text+"\n};"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &f.Sections[0]
}

// TestDigestLogin reads the four sections that ZooKeeper's documentation shows for DIGEST-MD5.
func TestDigestLogin(t *testing.T) {
	f, err := Parse("f", readFile(t, "zookeeper.conf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		users          map[string]string
		user, password string
	}{
		"Server":        {map[string]string{"super": "adminsecret", "bob": "bobsecret"}, "", ""},
		"Client":        {map[string]string{}, "bob", "bobsecret"},
		"QuorumServer":  {map[string]string{"test": "test"}, "", ""},
		"QuorumLearner": {map[string]string{}, "test", "test"},
	} {
		s, err := f.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Login()
		if err != nil || l.Kerberos != nil || l.Ignored != nil {
			t.Fatalf("%s: %v, %v", name, l, err)
		}
		users := map[string]string{}
		for user, password := range l.Digest.Users {
			users[user] = password.Reveal()
		}
		if !reflect.DeepEqual(users, want.users) || l.Digest.Username != want.user || l.Digest.Password.Reveal() != want.password {
			t.Errorf("%s: %v, %s", name, users, l.Digest.Username)
		}
	}
}

// TestSeveralDigestModules checks that the users of several modules are combined, and that the later of
// two users with the same name counts.
func TestSeveralDigestModules(t *testing.T) {
	m := DigestModule
	l, err := section(t, m+` required user_a="1" user_b="2" user_b="3";`+m+` optional user_a="4" username="u" password="p";`+m+` optional username="v" password="q";`).Login()
	if err != nil {
		t.Fatal(err)
	}
	d := l.Digest
	if len(d.Users) != 2 || d.Users["a"].Reveal() != "4" || d.Users["b"].Reveal() != "3" || d.Username != "u" || d.Password.Reveal() != "p" {
		t.Errorf("%v %s", d.Users, d.Username)
	}
}

func TestKerberosLogin(t *testing.T) {
	f, err := Parse("f", readFile(t, "kerberos.conf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Kerberos{
		"Server":   {Principal: "zookeeper/host.example.com@EXAMPLE.COM", UseKeyTab: true, KeyTab: "/path/to/keytab", StoreKey: true, Initiator: true},
		"Client":   {UseTicketCache: true, TicketCache: "/tmp/krb5cc_1000", RefreshKrb5Config: true, Initiator: true},
		"Acceptor": {Principal: "zookeeper/h@R", UseKeyTab: true, StoreKey: true},
	} {
		s, err := f.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := s.Login(); err != nil || l.Digest != nil || *l.Kerberos != want || l.Ignored != nil {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// TestLoginsThatAreRefused checks that the error names the place, the option and a remedy.
func TestLoginsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "f:1:1: the section S has no login module; add " + DigestModule,
		"com.ibm.security.auth.module.Krb5LoginModule required;":                        "f:2:1: section S: the login module com.ibm.security.auth.module.Krb5LoginModule is not supported; use",
		DigestModule + ` required user_="x";`:                                           "f:2:67: the option user_ names no user",
		DigestModule + ` required username="x";`:                                        "f:2:70: the option username has no option password beside it",
		DigestModule + ` required password="x";`:                                        "f:2:70: the option password has no option username beside it",
		DigestModule + ` required username="" password="x";`:                            "the option username is empty",
		DigestModule + " required;\n" + KerberosModule + " optional;":                   "f:3:1: section S has more than one login module",
		KerberosModule + ` required useTicketCache=true;` + DigestModule + ` required;`: "more than one login module",
		KerberosModule + " required;":                                                   "would ask for a password; set useKeyTab=true",
		KerberosModule + " required useKeyTab=yes;":                                     "f:2:65: the option useKeyTab must be true or false",
		KerberosModule + ` required useKeyTab=true keyTab="/k";`:                        "needs the option principal",
		KerberosModule + ` required useKeyTab=true principal="*";`:                      "needs the option principal",
		KerberosModule + ` required useTicketCache=true keyTab="/k";`:                   "keyTab has no effect without useKeyTab=true",
		KerberosModule + ` required useKeyTab=true principal="a@R" ticketCache="/k";`:   "ticketCache has no effect without useTicketCache=true",
		KerberosModule + ` required useKeyTab=true principal="a@R" renewTGT=true;`:      "renewTGT has no effect without useTicketCache=true",
		KerberosModule + ` required useTicketCache=true ticketCache="KEYRING:x";`:       "ticketCache is of type KEYRING; only files are supported",
		KerberosModule + ` required useTicketCache=true ticketCache="";`:                "the option ticketCache is empty",
		KerberosModule + ` required useTicketCache=true storePass=true;`:                "the option storePass is not supported",
	} {
		l, err := section(t, text).Login()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v, %v\nwant %s", text, l, err, want)
		}
	}
}

// TestIgnoredOptionsAreReported checks that an option that the modules do not know is reported, and is no
// error.
func TestIgnoredOptionsAreReported(t *testing.T) {
	l, err := section(t, DigestModule+` required usr_bob="x" debug=true;`).Login()
	if err != nil || len(l.Ignored) != 1 || !strings.HasSuffix(l.Ignored[0], "the option usr_bob has no effect") || !strings.HasPrefix(l.Ignored[0], "f:2:") {
		t.Errorf("%v, %v", l, err)
	}
	l, err = section(t, KerberosModule+` required useTicketCache=true storePass=false hello="x";`).Login()
	if err != nil || len(l.Ignored) != 1 || !strings.Contains(l.Ignored[0], "the option hello has no effect") {
		t.Errorf("%v, %v", l, err)
	}
}

func TestPath(t *testing.T) {
	for value, want := range map[string]string{
		"/etc/jaas.conf": "/etc/jaas.conf", "=/etc/jaas.conf": "/etc/jaas.conf", "jaas.conf": "jaas.conf", "file:/etc/jaas.conf": "/etc/jaas.conf",
		"file:///etc/jaas.conf": "/etc/jaas.conf", "${bellwether.test}/jaas.conf": "VALUE/jaas.conf", "=${/}x": "/x",
		"file://host/x": "", "http://host/x": "", "": "", "=": "", "${nothing}": "", "file:x": "",
	} {
		if got, err := Path(value, properties); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", value, got, err, want)
		}
	}
}
