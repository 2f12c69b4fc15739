package secure

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// readPEM reads a file of PEM blocks. If keys is true, it returns a private key and its chain, whose
// blocks may come in any order. Otherwise it returns the certificates, all of which are trusted.
// ZooKeeper reads only keys in PKCS#8; this function reads openssl's older forms too. The password is not
// used if the key is not encrypted.
func readPEM(file, password []byte, keys bool) (contents, error) {
	key, certs, err := pemBlocks(file)
	switch {
	case err != nil:
		return contents{}, err
	case !keys:
		return contents{trusted: certs}, nil
	case key == nil:
		return contents{}, nil
	}
	signer, err := pemKey(key, password)
	switch {
	case err != nil:
		return contents{}, err
	case len(certs) == 0:
		return contents{}, errOnlyKey
	case !belongs(signer, certs[0]):
		return contents{}, fmt.Errorf("%w the first certificate, %s", errOtherKey, NameOf(certs[0]))
	}
	return contents{keys: []keyEntry{{signer, certs}}}, nil
}

// pemBlocks returns the first private key and the certificates of a file of PEM blocks. It fails if a block is damaged
// or cut off.
func pemBlocks(file []byte) (key *pem.Block, certs []*x509.Certificate, err error) {
	blocks := 0
	for rest := file; ; blocks++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		switch {
		case strings.HasSuffix(b.Type, "PRIVATE KEY"):
			if key == nil { // ZooKeeper takes the first key
				key = b
			}
		case strings.HasSuffix(b.Type, "CERTIFICATE"):
			cert, err := parseTrusted(b)
			if err != nil {
				return nil, nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
			}
			certs = append(certs, cert)
		}
	}
	if bytes.LastIndex(file, []byte("-----BEGIN ")) > bytes.LastIndex(file, []byte("-----END ")) {
		return nil, nil, errCut
	}
	if n := bytes.Count(file, []byte("-----BEGIN ")); n != blocks {
		return nil, nil, fmt.Errorf("the file has %d PEM blocks, and %d of them are damaged", n, n-blocks)
	}
	return key, certs, nil
}

// parseTrusted parses a certificate. In openssl's TRUSTED CERTIFICATE more data follows the certificate.
func parseTrusted(b *pem.Block) (*x509.Certificate, error) {
	der := b.Bytes
	if strings.HasPrefix(b.Type, "TRUSTED") {
		var first asn1.RawValue
		if _, err := asn1.Unmarshal(der, &first); err != nil {
			return nil, err
		}
		der = first.FullBytes
	}
	return parseCertificate(der)
}

// pemKey returns the key of a block, and decrypts it if necessary.
func pemKey(b *pem.Block, password []byte) (crypto.Signer, error) {
	if b.Headers["DEK-Info"] != "" {
		return nil, errors.New("the private key is encrypted in the old form of openssl")
	}
	der := b.Bytes
	if strings.HasPrefix(b.Type, "ENCRYPTED") {
		var e encryptedKey
		err := unmarshal(der, &e)
		if err == nil {
			der, err = decrypt(e.Algorithm, e.Data, passphrase{text: password})
		}
		if err != nil {
			return nil, fmt.Errorf("the encrypted private key: %w", err)
		}
	}
	key, err := parseKey(der)
	if err != nil && strings.HasPrefix(b.Type, "ENCRYPTED") {
		// With one wrong password in 256 the padding looks right by chance.
		return nil, fmt.Errorf("the encrypted private key: %w", errPassword)
	}
	return key, err
}
