package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// TokenMax is the longest token that is accepted, in bytes. Tickets with the groups of a Windows
// domain can have more than 20 KB.
const TokenMax = 60 << 10

// mechanismOID is the DER form of 1.2.840.113554.1.2.2, Kerberos 5.
var mechanismOID = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// tokenID says which message of Kerberos a context token holds (RFC 4121, 4.1).
type tokenID uint16

const (
	idRequest tokenID = 0x0100 // AP-REQ
	idReply   tokenID = 0x0200 // AP-REP
	idError   tokenID = 0x0300 // KRB-ERROR
)

// appendToken appends a context token (RFC 2743, 3.1).
func appendToken(b []byte, id tokenID, message []byte) []byte {
	size := len(mechanismOID) + 2 + len(message)
	b = append(b, 0x60)
	switch {
	case size < 0x80:
		b = append(b, byte(size))
	case size < 0x100:
		b = append(b, 0x81, byte(size))
	default:
		b = append(b, 0x82, byte(size>>8), byte(size))
	}
	b = append(b, mechanismOID...)
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return append(b, message...)
}

// parseToken returns the message of a context token.
func parseToken(b []byte) (tokenID, []byte, error) {
	if len(b) > TokenMax {
		return 0, nil, fmt.Errorf("a token of %d bytes; the limit is %d", len(b), TokenMax)
	}
	if len(b) < 2 || b[0] != 0x60 {
		return 0, nil, errors.New("the token is not one of GSSAPI")
	}
	size, rest := int(b[1]), b[2:]
	if size >= 0x80 {
		n := size - 0x80
		if n < 1 || n > 3 || len(rest) < n {
			return 0, nil, errors.New("the length of the token is not in DER")
		}
		size = 0
		for _, x := range rest[:n] {
			size = size<<8 | int(x)
		}
		rest = rest[n:]
	}
	switch {
	case size != len(rest):
		return 0, nil, fmt.Errorf("the token has %d bytes and says %d", len(rest), size)
	case !bytes.HasPrefix(rest, mechanismOID):
		return 0, nil, errors.New("the token is for another mechanism than Kerberos 5; clients must use GSSAPI without SPNEGO")
	case len(rest) < len(mechanismOID)+2:
		return 0, nil, errors.New("the token has no message")
	}
	rest = rest[len(mechanismOID):]
	return tokenID(binary.BigEndian.Uint16(rest)), rest[2:], nil
}

// side is one end of an exchange.
type side struct {
	flags byte   // flags of its wrap tokens
	usage uint32 // number of the use of the key, which differs between the ends
}

var (
	fromInitiator = side{0, keyusage.GSSAPI_INITIATOR_SEAL}
	fromAcceptor  = side{flagAcceptor, keyusage.GSSAPI_ACCEPTOR_SEAL}
)

// Flags and size of a wrap token's header (RFC 4121, 4.2).
const (
	flagAcceptor = 1
	flagSealed   = 2
	flagSubkey   = 4 // the acceptor's subkey is used
	headerSize   = 16
)

// wrap signs a text that is not encrypted.
func wrap(text []byte, key types.EncryptionKey, from side, sequence uint64) ([]byte, error) {
	b := []byte{5, 4, from.flags, 0xff, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint64(b, sequence)
	sum, err := wrapSum(text, b, key, from)
	if err != nil {
		return nil, err
	}
	b = append(append(b, text...), sum...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(sum)))
	return b, nil
}

// unwrap returns the text of a wrap token after it has checked the signature.
func unwrap(b []byte, key types.EncryptionKey, from side) ([]byte, error) {
	if len(b) < headerSize || b[0] != 5 || b[1] != 4 || b[3] != 0xff {
		return nil, errors.New("the token is not a wrap token of RFC 4121")
	}
	switch flags := b[2]; {
	case flags&flagAcceptor != from.flags:
		return nil, errors.New("the wrap token comes from this end of the exchange; it may be a reflection")
	case flags&flagSealed != 0:
		return nil, errors.New("the wrap token is encrypted, which the quality auth does not do")
	case flags&flagSubkey != 0:
		return nil, errors.New("the wrap token uses a subkey that this end has not proposed")
	}
	size, rotated := int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:]))
	body := b[headerSize:]
	if size > len(body) {
		return nil, errors.New("the wrap token is too short")
	}
	if n := len(body); n > 0 {
		rotated %= n
		body = append(bytes.Clone(body[rotated:]), body[:rotated]...)
	}
	text, sum := body[:len(body)-size], body[len(body)-size:]
	want, err := wrapSum(text, b[:headerSize], key, from)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(sum, want) {
		return nil, errors.New("the signature of the wrap token is wrong")
	}
	return text, nil
}

// wrapSum signs text and header, in which the length of the sum and the rotation count as 0.
func wrapSum(text, header []byte, key types.EncryptionKey, from side) ([]byte, error) {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil || !strong(key.KeyType) {
		return nil, weakKey(key.KeyType)
	}
	b := append(bytes.Clone(text), header[:headerSize]...)
	clear(b[len(text)+4 : len(text)+8])
	return e.GetChecksumHash(key.KeyValue, b, from.usage)
}

// strong says whether keys of the type are AES keys.
func strong(keyType int32) bool {
	switch keyType {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
		return true
	}
	return false
}

func weakKey(keyType int32) error {
	return fmt.Errorf("a key of the encryption type %d is not supported; make the KDC use AES (types 17 to 20)", keyType)
}

// Layers of RFC 4752: a bit mask, and the largest message that may be wrapped.
const layerNone = 1

// layers is what this package always offers and chooses: no layer, and 0 as the largest message.
var layers = []byte{layerNone, 0, 0, 0}

// guard turns a panic of gokrb5 on a malformed message into an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("malformed message: %v", p)
	}
}
