package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/portblock"
	"bellwether/interop/target"
)

// kdcRealm is the realm of the key distribution center of the tests.
const kdcRealm = "EXAMPLE.COM"

// kdc is MIT's key distribution center with an empty realm, in a directory of its own and as a child
// of the test.
type kdc struct {
	dir     string
	conf    string // krb5.conf
	address string
	stop    func() // ends the process; serve starts it again
}

// startKDC creates a realm and starts its KDC, which ends with the test.
func startKDC(t *testing.T) *kdc {
	t.Helper()
	target.File(t, "/usr/sbin/krb5kdc", "krb5-kdc")
	target.File(t, "/usr/sbin/kadmin.local", "krb5-admin-server")
	target.File(t, "/usr/bin/kinit", "krb5-user")
	ports, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	k := &kdc{dir: t.TempDir()}
	k.conf = k.file("krb5.conf")
	k.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	k.write(t, "krb5.conf", "[libdefaults]\n default_realm = %[1]s\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"+
		" dns_canonicalize_hostname = false\n udp_preference_limit = 1\n[realms]\n %[1]s = {\n  kdc = %[2]s\n }\n", kdcRealm, k.address)
	k.write(t, "kdc.conf", "[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = %[2]s\n[realms]\n %[1]s = {\n  database_name = %[3]s/principal\n"+
		"  key_stash_file = %[3]s/stash\n  acl_file = %[3]s/acl\n  supported_enctypes = aes256-cts:normal aes128-cts:normal\n  max_renewable_life = 1h\n }\n"+
		"[logging]\n kdc = FILE:%[3]s/kdc.log\n", kdcRealm, k.address, k.dir)
	k.run(t, "/usr/sbin/kdb5_util", "create", "-s", "-r", kdcRealm, "-P", "of no importance")
	k.serve(t)
	return k
}

// serve starts the KDC and waits until it listens.
func (k *kdc) serve(t *testing.T) {
	t.Helper()
	cmd := k.command("/usr/sbin/krb5kdc", "-n", "-P", k.file("pid"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(k.stop)
	for deadline := time.Now().Add(electionWait); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", k.address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(k.file("kdc.log"))
			t.Fatalf("the KDC does not listen: %v\n%s", err, log)
		}
	}
}

func (k *kdc) file(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(t *testing.T, name, format string, args ...any) string {
	t.Helper()
	if err := os.WriteFile(k.file(name), fmt.Appendf(nil, format, args...), 0o600); err != nil {
		t.Fatal(err)
	}
	return k.file(name)
}

func (k *kdc) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.conf, "KRB5_KDC_PROFILE="+k.file("kdc.conf"))
	return cmd
}

func (k *kdc) run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := k.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// keytab creates a principal with a random key and returns a keytab with it. Options are those of
// kadmin's addprinc; encryption is a list of key types, or empty for AES.
func (k *kdc) keytab(t *testing.T, principal, encryption, options string) string {
	t.Helper()
	path := k.file(strings.ReplaceAll(principal, "/", "_") + ".keytab")
	if encryption != "" {
		encryption = "-e " + encryption
	}
	k.run(t, "/usr/sbin/kadmin.local", "-r", kdcRealm, "-q", fmt.Sprintf("addprinc -randkey %s %s %s", encryption, options, principal))
	k.run(t, "/usr/sbin/kadmin.local", "-r", kdcRealm, "-q", fmt.Sprintf("ktadd -k %s %s %s", path, encryption, principal))
	return path
}

// cache gets a ticket for the principal of a keytab and returns a ticket cache with it. Options are
// those of kinit.
func (k *kdc) cache(t *testing.T, principal, keytab string, options ...string) string {
	t.Helper()
	path := k.file(principal + ".cache")
	k.run(t, "/usr/bin/kinit", append(options, "-k", "-t", keytab, "-c", path, principal)...)
	return path
}
