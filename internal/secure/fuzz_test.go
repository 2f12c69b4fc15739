package secure

import (
	"crypto/sha1"
	"os"
	"path/filepath"
	"testing"
)

// fuzzMax bounds the inputs of the fuzz targets: larger inputs find nothing more and take longer.
const fuzzMax = 64 << 10

// seed adds the recorded stores of a type to a fuzz target.
func seed(f *testing.F, pattern string, keep func([]byte) []byte) {
	names, err := filepath.Glob("testdata/stores/" + pattern)
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(keep(b))
	}
	// The seeds fast.p12 and encrypted-fast.pem need one iteration.
	lower(f, 50)
}

func whole(b []byte) []byte { return b }

// checkContents fails if parsing accepted a store that breaks a promise of contents.
func checkContents(t *testing.T, c contents, err error) {
	if err != nil {
		return
	}
	for _, k := range c.keys {
		if len(k.chain) == 0 || !belongs(k.key, k.chain[0]) {
			t.Error("a key without its certificate was accepted")
		}
	}
	for _, cert := range c.trusted {
		NameOf(cert)
		alternativeNames(cert)
	}
}

func FuzzPEM(f *testing.F) {
	seed(f, "*.pem", whole)
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > fuzzMax {
			return
		}
		for _, keys := range []bool{true, false} {
			c, err := parseStore(file, PEM, []byte("changeit"), keys)
			checkContents(t, c, err)
		}
	})
}

func FuzzPKCS12(f *testing.F) {
	seed(f, "*.p12", whole)
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > fuzzMax {
			return
		}
		for _, keys := range []bool{true, false} {
			for _, password := range []string{"", "changeit"} {
				c, err := parseStore(file, PKCS12, []byte(password), keys)
				checkContents(t, c, err)
			}
		}
	})
}

// FuzzJKS changes everything before the checksum, and computes the checksum again.
func FuzzJKS(f *testing.F) {
	seed(f, "*.jks", func(b []byte) []byte { return b[:max(0, len(b)-sha1.Size)] })
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > fuzzMax {
			return
		}
		h := sha1.New()
		h.Write(utf16Bytes([]byte("changeit")))
		h.Write([]byte("Mighty Aphrodite"))
		h.Write(body)
		file := h.Sum(append([]byte(nil), body...))
		for _, keys := range []bool{true, false} {
			c, err := readJKS(file, []byte("changeit"), keys)
			checkContents(t, c, err)
		}
	})
}

// FuzzName prints any bytes as a name.
func FuzzName(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		if len(der) > fuzzMax {
			return
		}
		nameText(der)
	})
}

// FuzzSubject reads any text as a subject.
func FuzzSubject(f *testing.F) {
	f.Add(`CN=a\ ,O="b"+1.2.3=#0c0161`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > fuzzMax {
			return
		}
		ValidSubject(text)
	})
}

// FuzzCRL reads any bytes as a revocation list.
func FuzzCRL(f *testing.F) {
	ca := authority(f, "ca")
	leaf := ca.issue(f, "leaf", nil)
	f.Add(crlOf(f, ca, nil, leaf))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > fuzzMax {
			return
		}
		if l, err := parseCRL(b); err == nil {
			_ = l.covers(leaf.cert, ca.cert)
		}
	})
}
