package secure

import (
	"crypto/sha1"
	"crypto/subtle"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
)

// The file format of Java's key stores: a magic number, a version, the number of entries, the entries,
// and a SHA-1 of a password and all the fields before it.
const (
	jksMagic   = 0xfeedfeed
	jceksMagic = 0xcececece
	jksKey     = 1
	jksTrusted = 2
)

// oidJKSKey is the encryption of a private key in such a file.
var oidJKSKey = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

// jksReader reads the fields of a file. After an error or the end of the file it returns zeros, and keeps
// the error.
type jksReader struct {
	rest []byte
	cut  bool
}

func (r *jksReader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.rest)) {
		r.rest, r.cut = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *jksReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// text reads a string that follows its length in two bytes.
func (r *jksReader) text() string {
	if b := r.take(2); b != nil {
		return string(r.take(uint32(binary.BigEndian.Uint16(b))))
	}
	return ""
}

// jksEntry is an entry in the form in which the file holds it.
type jksEntry struct {
	alias string
	key   []byte   // encrypted; nil for a trusted certificate
	certs [][]byte // the chain of the key, or the one trusted certificate
}

// readJKS reads a file of Java's own format. With keys false it does not decrypt keys.
func readJKS(file, password []byte, keys bool) (contents, error) {
	entries, err := parseJKS(file, password)
	if err != nil {
		return contents{}, err
	}
	var c contents
	for _, e := range entries {
		if e.key != nil && !keys {
			c.others++
			continue
		}
		chain, err := parseCertificates(e.certs)
		if err != nil {
			return contents{}, fmt.Errorf("entry %q: %w", e.alias, err)
		}
		if e.key == nil {
			c.trusted = append(c.trusted, chain...)
			continue
		}
		der, err := decryptJKS(e.key, password)
		if err != nil {
			return contents{}, fmt.Errorf("entry %q: %w", e.alias, err)
		}
		key, err := parseKey(der)
		if err != nil {
			return contents{}, fmt.Errorf("entry %q: %w", e.alias, err)
		}
		if len(chain) == 0 {
			return contents{}, fmt.Errorf("entry %q: a key without a certificate", e.alias)
		}
		if !belongs(key, chain[0]) {
			return contents{}, fmt.Errorf("entry %q: %w its certificate, %s", e.alias, errOtherKey, NameOf(chain[0]))
		}
		c.keys = append(c.keys, keyEntry{key: key, chain: chain})
	}
	return c, nil
}

// parseJKS checks the password and returns the entries.
func parseJKS(file, password []byte) ([]jksEntry, error) {
	if len(file) < 12+sha1.Size {
		return nil, errors.New("the file is cut off")
	}
	r := &jksReader{rest: file[:len(file)-sha1.Size]}
	body := r.rest
	if magic := r.uint32(); magic == jceksMagic {
		return nil, errors.New("a JCEKS file, which ZooKeeper does not read either")
	} else if magic != jksMagic {
		return nil, errors.New("not a JKS file")
	}
	version, count := r.uint32(), r.uint32()
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("JKS version %d is not known", version)
	}
	var entries []jksEntry
	for ; count > 0 && !r.cut; count-- {
		e, err := r.entry(version)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if r.cut || len(r.rest) > 0 {
		return nil, errors.New("the file is cut off or damaged")
	}
	secret := utf16Bytes(password)
	defer clear(secret)
	sum := sumOnce(sha1.New(), secret, []byte("Mighty Aphrodite"), body) // the file format prescribes this text
	if subtle.ConstantTimeCompare(sum, file[len(body):]) != 1 {
		return nil, errPassword
	}
	return entries, nil
}

// entry reads one entry.
func (r *jksReader) entry(version uint32) (jksEntry, error) {
	tag := r.uint32()
	e := jksEntry{alias: r.text()}
	r.take(8) // the date of the entry
	switch {
	case r.cut:
	case tag == jksTrusted:
		e.certs = [][]byte{r.certificate(version)}
	case tag == jksKey:
		e.key = r.take(r.uint32())
		for n := r.uint32(); n > 0 && !r.cut; n-- {
			e.certs = append(e.certs, r.certificate(version))
		}
	default:
		return e, fmt.Errorf("entry %q has the unknown kind %d", e.alias, tag)
	}
	return e, nil
}

// certificate reads one certificate.
func (r *jksReader) certificate(version uint32) []byte {
	if version == 2 {
		r.text() // its type, always X.509
	}
	return r.take(r.uint32())
}

// errEntryPassword is the error of a key whose password differs from that of the file.
var errEntryPassword = errors.New("the password of the key differs from that of the file; ZooKeeper needs the same one for both")

// decryptJKS decrypts a private key. The format is a salt, the key combined with a stream
// of SHA-1 sums, and a SHA-1 of password and key.
func decryptJKS(der, password []byte) ([]byte, error) {
	var e encryptedKey
	if err := unmarshal(der, &e); err != nil {
		return nil, err
	}
	if !e.Algorithm.Algorithm.Equal(oidJKSKey) || len(e.Data) < 2*sha1.Size {
		return nil, fmt.Errorf("the encryption %s is not that of JKS", e.Algorithm.Algorithm)
	}
	secret := utf16Bytes(password)
	defer clear(secret)
	sum := e.Data[:sha1.Size]
	h := sha1.New()
	plain := append([]byte(nil), e.Data[sha1.Size:len(e.Data)-sha1.Size]...)
	for i := range plain {
		if i%sha1.Size == 0 {
			sum = sumOnce(h, secret, sum)
		}
		plain[i] ^= sum[i%sha1.Size]
	}
	if subtle.ConstantTimeCompare(sumOnce(h, secret, plain), e.Data[len(e.Data)-sha1.Size:]) != 1 {
		return nil, errEntryPassword
	}
	return plain, nil
}
