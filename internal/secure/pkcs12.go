package secure

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
)

// bagsMax bounds the nesting and the number of the parts of a PKCS#12 file.
const bagsMax = 10_000

var (
	oidData          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidEncryptedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 6}
	oidKeyBag        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 1}
	oidShroudedBag   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 2}
	oidCertBag       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 3}
	oidX509Bag       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 22, 1}
	oidLocalKeyID    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 21}
	// oidTrusted is the attribute with which Java marks a certificate as trusted.
	oidTrusted = asn1.ObjectIdentifier{2, 16, 840, 1, 113894, 746875, 1, 1}
)

// The structures of RFC 7292, section 4.
type (
	pfx struct {
		Version int
		Safe    contentInfo
		MAC     macData `asn1:"optional"`
	}
	contentInfo struct {
		Type    asn1.ObjectIdentifier
		Content asn1.RawValue `asn1:"tag:0,explicit,optional"`
	}
	macData struct {
		MAC struct {
			Algorithm pkix.AlgorithmIdentifier
			Digest    []byte
		}
		Salt       []byte
		Iterations int `asn1:"optional,default:1"`
	}
	encryptedData struct {
		Version int
		Info    struct {
			Type      asn1.ObjectIdentifier
			Algorithm pkix.AlgorithmIdentifier
			Content   []byte `asn1:"tag:0,optional"`
		}
	}
	safeBag struct {
		ID         asn1.ObjectIdentifier
		Value      asn1.RawValue  `asn1:"tag:0,explicit"`
		Attributes []bagAttribute `asn1:"set,optional"`
	}
	bagAttribute struct {
		ID     asn1.ObjectIdentifier
		Values asn1.RawValue `asn1:"set"`
	}
	certBag struct {
		ID   asn1.ObjectIdentifier
		Data []byte `asn1:"tag:0,explicit"`
	}
)

func (b safeBag) attribute(id asn1.ObjectIdentifier) ([]byte, bool) {
	for _, a := range b.Attributes {
		if a.ID.Equal(id) {
			return a.Values.Bytes, true
		}
	}
	return nil, false
}

// readPKCS12 reads a PKCS#12 file. As in Java, a certificate is trusted only if the file
// marks it so, which keytool does and openssl does not.
func readPKCS12(file, password []byte, keys bool) (contents, error) {
	bags, secret, err := openPKCS12(file, password)
	if err != nil {
		return contents{}, err
	}
	var c contents
	var shrouded []safeBag
	var others []*x509.Certificate
	ids := map[*x509.Certificate][]byte{}
	for _, b := range bags {
		switch {
		case b.ID.Equal(oidCertBag):
			cert, err := b.certificate()
			if err != nil {
				return contents{}, err
			}
			if _, ok := b.attribute(oidTrusted); ok {
				c.trusted = append(c.trusted, cert)
				continue
			}
			ids[cert], _ = b.attribute(oidLocalKeyID)
			others = append(others, cert)
		case b.ID.Equal(oidShroudedBag), b.ID.Equal(oidKeyBag):
			shrouded = append(shrouded, b)
		}
	}
	c.others = len(others)
	if !keys {
		return c, nil
	}
	for _, b := range shrouded {
		key, err := b.key(secret)
		if err != nil {
			return contents{}, err
		}
		id, _ := b.attribute(oidLocalKeyID)
		if leaf := leafOf(key, id, others, ids); leaf != nil {
			c.keys = append(c.keys, keyEntry{key: key, chain: chainOf(leaf, append(others, c.trusted...))})
		} else {
			c.alone++ // Java does not find an entry for a key without a certificate either
		}
	}
	return c, nil
}

// openPKCS12 checks the password and returns all bags of the file.
func openPKCS12(file, password []byte) ([]safeBag, passphrase, error) {
	secret := passphrase{text: password}
	var p pfx
	if err := unmarshal(file, &p); err != nil {
		if len(file) > 1 && file[0] == 0x30 && file[1] == 0x80 {
			return nil, secret, errors.New("the file is in BER, not in DER")
		}
		return nil, secret, fmt.Errorf("not a whole PKCS#12 file: %w", err)
	}
	var safe []byte
	if p.Version != 3 || !p.Safe.Type.Equal(oidData) {
		return nil, secret, errors.New("not a PKCS#12 file of version 3 with a password")
	}
	if err := unmarshal(p.Safe.Content.Bytes, &safe); err != nil {
		return nil, secret, err
	}
	if len(p.MAC.MAC.Algorithm.Algorithm) > 0 {
		err := checkMAC(p.MAC, safe, secret)
		if len(password) == 0 && errors.Is(err, errPassword) {
			secret.none = true
			err = checkMAC(p.MAC, safe, secret)
		}
		if err != nil {
			return nil, secret, err
		}
	}
	bags, err := readBags(safe, secret)
	return bags, secret, err
}

// readBags returns the bags of all parts of a file, the encrypted parts included.
func readBags(safe []byte, secret passphrase) (all []safeBag, err error) {
	var parts []contentInfo
	if err := unmarshal(safe, &parts); err != nil {
		return nil, err
	}
	for _, part := range parts {
		var plain []byte
		switch {
		case part.Type.Equal(oidData):
			err = unmarshal(part.Content.Bytes, &plain)
		case part.Type.Equal(oidEncryptedData):
			var e encryptedData
			if err = unmarshal(part.Content.Bytes, &e); err == nil {
				plain, err = decrypt(e.Info.Algorithm, e.Info.Content, secret)
			}
		default:
			err = fmt.Errorf("contents of type %s are not supported", part.Type)
		}
		var bags []safeBag
		if err == nil {
			err = unmarshal(plain, &bags)
		}
		if err != nil {
			return nil, err
		}
		if all = append(all, bags...); len(all) > bagsMax {
			return nil, fmt.Errorf("more than %d entries", bagsMax)
		}
	}
	return all, nil
}

// certificate returns the certificate of a certificate bag.
func (b safeBag) certificate() (*x509.Certificate, error) {
	var c certBag
	if err := unmarshal(b.Value.Bytes, &c); err != nil {
		return nil, err
	}
	if !c.ID.Equal(oidX509Bag) {
		return nil, fmt.Errorf("certificates of type %s are not supported", c.ID)
	}
	return parseCertificate(c.Data)
}

// key returns the key of a key bag.
func (b safeBag) key(password passphrase) (crypto.Signer, error) {
	der := b.Value.Bytes
	if b.ID.Equal(oidShroudedBag) {
		var e encryptedKey
		if err := unmarshal(der, &e); err != nil {
			return nil, err
		}
		var err error
		if der, err = decrypt(e.Algorithm, e.Data, password); err != nil {
			return nil, err
		}
	}
	return parseKey(der)
}

// leafOf returns the certificate of a key: the certificate with the key's local id or, if there is none,
// the one with its public key.
func leafOf(key crypto.Signer, id []byte, all []*x509.Certificate, ids map[*x509.Certificate][]byte) *x509.Certificate {
	for _, c := range all {
		if len(id) > 0 && bytes.Equal(ids[c], id) && belongs(key, c) {
			return c
		}
	}
	for _, c := range all {
		if belongs(key, c) {
			return c
		}
	}
	return nil
}

// chainOf returns a certificate followed by those of its issuers that the file contains.
func chainOf(leaf *x509.Certificate, all []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{leaf}
	for len(chain) < chainMax {
		last := chain[len(chain)-1]
		if bytes.Equal(last.RawIssuer, last.RawSubject) {
			break
		}
		next := issuerOf(last, all)
		if next == nil {
			break
		}
		chain = append(chain, next)
	}
	return chain
}

func issuerOf(c *x509.Certificate, all []*x509.Certificate) *x509.Certificate {
	for _, issuer := range all {
		if bytes.Equal(issuer.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(issuer) == nil {
			return issuer
		}
	}
	return nil
}
