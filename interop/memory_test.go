package interop

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/interop/target"
)

// TestPasswordsAreNotKeptInMemory searches the memory of a running server, as a reader of its core dump would,
// before and after a reload. It does not find the passwords of key stores that are in password files. It does
// find a text that the server needs all the time, which shows that the search works.
func TestPasswordsAreNotKeptInMemory(t *testing.T) {
	dir := certificates(t)
	for _, format := range []string{"JKS", "PKCS12", "PEM"} {
		t.Run(format, func(t *testing.T) {
			password := rand.Text()
			store := encryptedStore(t, dir, format, password)
			secret := strings.Repeat(rand.Text(), 2)
			at := t.TempDir()
			s := target.StartFor(t, target.Bellwether, target.Options{Extra: map[string]string{
				"secureClientPort": target.FreePort(t), "secureClientPortAddress": "127.0.0.1",
				"ssl.keyStore.location": store, "ssl.keyStore.passwordPath": fileWith(t, at, "store-password", password+"\n"),
				"ssl.trustStore.location": filepath.Join(dir, authority.CertFile),
				"sessionSecretFile":       fileWith(t, at, "session-secret", secret+"\n"),
			}})
			notKept := map[string]string{"password": password, "password in UTF-16": utf16Text(password)}
			checkMemory(t, s, "at the start", notKept, secret)
			fileWith(t, at, "session-secret", secret+"\n"+strings.Repeat("n", 40)+"\n")
			if err := s.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); !strings.Contains(s.Log(), "session secrets were read"); {
				if time.Now().After(end) {
					t.Fatal("no reload")
				}
				<-time.After(10 * time.Millisecond)
			}
			checkMemory(t, s, "after a reload", notKept, secret)
		})
	}
}

// fileWith writes a file that only its owner can read, and returns its name.
func fileWith(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// encryptedStore writes the server's certificate and key to a store with a password.
func encryptedStore(t *testing.T, dir, format, password string) string {
	t.Helper()
	at := t.TempDir()
	pem, p12 := filepath.Join(dir, "server.pem"), filepath.Join(at, "server.p12")
	commands := map[string][]string{
		"PEM":    {"openssl", "pkcs8", "-topk8", "-in", pem, "-out", filepath.Join(at, "server.pem"), "-passout", "pass:" + password},
		"PKCS12": {"openssl", "pkcs12", "-export", "-in", pem, "-out", p12, "-passout", "pass:" + password},
		"JKS": {"keytool", "-importkeystore", "-srckeystore", p12, "-srcstorepass", password, "-destkeystore", filepath.Join(at, "server.jks"),
			"-deststorepass", password, "-deststoretype", "JKS", "-noprompt"},
	}
	steps := []string{format}
	if format == "JKS" {
		steps = []string{"PKCS12", "JKS"}
	}
	for _, step := range steps {
		command := commands[step]
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
	if format == "PEM" {
		appendCertificate(t, filepath.Join(at, "server.pem"), pem)
	}
	return filepath.Join(at, map[string]string{"PEM": "server.pem", "PKCS12": "server.p12", "JKS": "server.jks"}[format])
}

// appendCertificate copies the certificates of one PEM file to the end of another one.
func appendCertificate(t *testing.T, to, from string) {
	t.Helper()
	key, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.Index(all, []byte("-----BEGIN CERTIFICATE"))
	if err := os.WriteFile(to, append(key, all[first:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// utf16Text returns an ASCII text in big-endian UTF-16, as key derivations use it.
func utf16Text(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(0)
		b.WriteByte(c)
	}
	return b.String()
}

// checkMemory fails the test if one of the texts is in the memory of a server, or if the text
// that the server needs is not.
func checkMemory(t *testing.T, s *target.Server, when string, notKept map[string]string, kept string) {
	t.Helper()
	texts := []string{kept}
	var names []string
	for name, text := range notKept {
		names, texts = append(names, name), append(texts, text)
	}
	counts, err := searchMemory(s.PID(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if counts[0] == 0 {
		t.Errorf("%s: the session secret is not found; does the search work?", when)
	}
	for i, name := range names {
		if n := counts[i+1]; n > 0 {
			t.Errorf("%s: the %s is %d times in the memory of the server", when, name, n)
		}
	}
}

// searchMemory returns how often each text is in the writable memory of a process.
func searchMemory(pid int, texts []string) ([]int, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	counts := make([]int, len(texts))
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		area, err := readArea(mem, from, to)
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			counts[i] += bytes.Count(area, []byte(text))
		}
	}
	return counts, nil
}

// readArea reads an area of memory. Pages that cannot be read, such as those that belong to the kernel,
// are left out.
func readArea(mem *os.File, from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	n, err := mem.ReadAt(b, from)
	if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}
