package secure

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// crl is a revocation list.
type crl struct {
	list    *x509.RevocationList
	revoked map[string]time.Time // time of revocation, by serial number
	scope   scope
}

// scope is IssuingDistributionPoint of RFC 5280, 5.2.5. It says which certificates a list covers.
type scope struct {
	Point          asn1.RawValue  `asn1:"optional,tag:0"`
	OnlyUsers      bool           `asn1:"optional,tag:1"`
	OnlyAuthority  bool           `asn1:"optional,tag:2"`
	OnlyReasons    asn1.BitString `asn1:"optional,tag:3"`
	Indirect       bool           `asn1:"optional,tag:4"`
	OnlyAttributes bool           `asn1:"optional,tag:5"`
}

var (
	oidScope    = asn1.ObjectIdentifier{2, 5, 29, 28}
	oidNumber   = asn1.ObjectIdentifier{2, 5, 29, 20}
	oidIssuerID = asn1.ObjectIdentifier{2, 5, 29, 35}
)

// parseCRL parses a list in DER or PEM.
func parseCRL(b []byte) (*crl, error) {
	if block, _ := pem.Decode(b); block != nil {
		b = block.Bytes
	}
	list, err := x509.ParseRevocationList(b)
	if err != nil {
		return nil, fmt.Errorf("not a revocation list: %w", err)
	}
	l := &crl{list: list, revoked: make(map[string]time.Time, len(list.RevokedCertificateEntries))}
	for _, e := range list.Extensions {
		switch {
		case e.Id.Equal(oidScope):
			if err := unmarshal(e.Value, &l.scope); err != nil {
				return nil, fmt.Errorf("not a revocation list: the extension IssuingDistributionPoint: %w", err)
			}
		case e.Id.Equal(oidNumber), e.Id.Equal(oidIssuerID):
		case e.Critical:
			// A list that contains only changes, for example, does not say that the other certificates
			// are valid.
			return nil, fmt.Errorf("the list has the extension %s, which is not supported", e.Id)
		}
	}
	for _, e := range list.RevokedCertificateEntries {
		l.revoked[e.SerialNumber.String()] = e.RevocationTime
	}
	return l, nil
}

// covers returns an error if the list does not say whether a certificate is revoked.
func (l *crl) covers(c, issuer *x509.Certificate) error {
	s := l.scope
	switch {
	case !bytes.Equal(l.list.RawIssuer, c.RawIssuer):
		return fmt.Errorf("another authority issued the list: %q", nameText(l.list.RawIssuer))
	case s.Indirect || s.OnlyAttributes || s.OnlyReasons.BitLength > 0 || s.OnlyUsers && c.IsCA || s.OnlyAuthority && !c.IsCA:
		return errors.New("the list does not cover certificates of this kind")
	}
	if err := l.list.CheckSignatureFrom(issuer); err != nil {
		return fmt.Errorf("the signature of the list is wrong: %w", err)
	}
	return nil
}
