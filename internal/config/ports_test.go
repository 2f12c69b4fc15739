package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedPortsAreRefused shows that two servers must not share an address and that a
// server must not open one twice. Addresses that may be on other machines are allowed.
func TestSharedPortsAreRefused(t *testing.T) {
	const head = "dataDir=DIR\ninitLimit=5\nsyncLimit=2\n"
	for _, c := range []struct{ lines, refused string }{
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=2181\n", ""},
		{"server.1=a:2888:3888\nserver.2=a:2889:3889\nclientPort=2181\n", ""},
		{"server.1=0.0.0.0:2888:3888\nserver.2=b:2888:3888\nserver.3=0.0.0.0:2888:3888\nclientPort=2181\n", ""},
		{"server.1=a:2888:3888\nserver.2=a:2888:3889\n", "server.2 has the address a:2888 of server.1"},
		{"server.1=a:2888:3888\nserver.2=a:3888:4888:observer\nserver.3=c:1:2\n", "server.2 has the address a:3888 of server.1"},
		{"multiAddress.enabled=true\nserver.1=a:2888:3888|b:2888:3888\nserver.2=c:2888:3888|b:2888:3889\n", "server.2 has the address b:2888 of server.1"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=2888\n", "uses port 2888 both as the client port and as the quorum port"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=3888\nclientPortAddress=A\n", "uses port 3888 both as the client port and as the election port"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=3888\nclientPortAddress=c\n", ""},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=3888\nclientPortAddress=c\nquorumListenOnAllIPs=true\n", "uses port 3888 both as the client port and as the election port"},
		{"server.1=a:2888:3888;2888\nserver.2=b:2888:3888;2888\n", "uses port 2888 both as the client port and as the quorum port"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888;2888\nclientPort=2181\n", ""},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nsecureClientPort=2888\nssl.keyStore.location=/k.pem\n", "uses port 2888 both as the secure client port and as the quorum port"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=2181\nobserverMasterPort=2889\n", ""},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=2181\nobserverMasterPort=3888\n", "uses port 3888 both as the observer master port and as the election port"},
		{"server.1=a:2888:3888\nserver.2=b:2888:3888\nclientPort=2889\nobserverMasterPort=2889\n", "uses port 2889 both as a client port and as the observer master port"},
		{"server.1=a:2888:3888\nclientPort=2888\n", ""}, // a standalone server opens no other port
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(head+c.lines, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, "")
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q: %v, want %q", c.lines, err, c.refused)
		}
	}
}

// TestByteOrderMarksAreRefused shows that a byte-order mark is refused in zoo.cfg and in
// the dynamic file.
func TestByteOrderMarksAreRefused(t *testing.T) {
	dir := t.TempDir()
	file, dynamic := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "dynamic")
	for mark, encoding := range map[string]string{"\xef\xbb\xbf": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		for _, marked := range []string{file, dynamic} {
			texts := map[string]string{file: "dataDir=" + dir + "\ndynamicConfigFile=" + dynamic + "\n", dynamic: "server.1=a:1:2;3\n"}
			texts[marked] = mark + texts[marked]
			for name, text := range texts {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Load(file, ""); err == nil || !strings.Contains(err.Error(), marked+":1: begins with the byte-order mark of "+encoding) {
				t.Errorf("%s with %q: %v", marked, mark, err)
			}
		}
	}
}
