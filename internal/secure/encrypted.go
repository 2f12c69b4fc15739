package secure

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"math/big"
)

// iterationsMax bounds the work that a file can demand before it is known whether the password is right:
// a few seconds. Tools write 2,000 to 600,000 iterations. The fuzz targets lower the bound.
var iterationsMax = 5_000_000

// errPassword is the error of a decryption or a check that fails, usually because the password is wrong.
var errPassword = errors.New("the password is wrong, or the file is damaged")

var (
	oidPBES2      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidScrypt     = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11591, 4, 11}
	oidPBEMD5DES  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 3}
	oidPBESHA3DES = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 3}
	oidPBESHARC2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 5}
	oidPBESHARC40 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 6}
)

// hashes are the hash functions of MACs and of the pseudo-random functions of PBKDF2.
var hashes = []struct {
	digest, hmac asn1.ObjectIdentifier
	new          func() hash.Hash
}{
	{asn1.ObjectIdentifier{1, 3, 14, 3, 2, 26}, asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 7}, sha1.New},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 4}, asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 8}, sha256.New224},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}, sha256.New},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}, asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 10}, sha512.New384},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}, asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 11}, sha512.New},
}

// encryptedKey is EncryptedPrivateKeyInfo of PKCS#8.
type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

// pbeParams are the parameters of the schemes of PKCS#5 version 1 and of PKCS#12, and the
// salt and iterations of a MAC.
type pbeParams struct {
	Salt       []byte
	Iterations int
}

// pbes2Params and pbkdf2Params are the parameters of PKCS#5 version 2.
type pbes2Params struct{ Derivation, Cipher pkix.AlgorithmIdentifier }

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

// unmarshal decodes a DER value, which must fill the input.
func unmarshal(der []byte, into any) error {
	rest, err := asn1.Unmarshal(der, into)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	return err
}

// decrypt decrypts data that was encrypted with a password.
func decrypt(algorithm pkix.AlgorithmIdentifier, data []byte, password passphrase) ([]byte, error) {
	block, iv, err := blockCipher(algorithm, password)
	if err != nil {
		return nil, err
	}
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errors.New("the encrypted data has a wrong length")
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > size || !bytes.Equal(plain[len(plain)-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, errPassword
	}
	return plain[:len(plain)-pad], nil
}

// blockCipher returns the cipher and the initialisation vector of an algorithm.
func blockCipher(algorithm pkix.AlgorithmIdentifier, password passphrase) (cipher.Block, []byte, error) {
	id := algorithm.Algorithm
	if id.Equal(oidPBES2) {
		return pbes2(algorithm.Parameters.FullBytes, password.text)
	}
	var p pbeParams
	switch {
	case id.Equal(oidPBEMD5DES), id.Equal(oidPBESHA3DES), id.Equal(oidPBESHARC2), id.Equal(oidPBESHARC40):
		if err := unmarshal(algorithm.Parameters.FullBytes, &p); err != nil {
			return nil, nil, err
		}
		if err := checkIterations(p.Iterations); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, fmt.Errorf("the encryption %s is not supported", id)
	}
	if id.Equal(oidPBEMD5DES) {
		key := sumOnce(md5.New(), password.text, p.Salt)
		for range p.Iterations - 1 {
			next := md5.Sum(key)
			key = next[:]
		}
		block, err := des.NewCipher(key[:8])
		return block, key[8:], err
	}
	secret := password.pkcs12()
	defer clear(secret)
	iv := derivePKCS12(sha1.New, secret, p, 2, 8)
	switch {
	case id.Equal(oidPBESHARC2):
		return newRC2(derivePKCS12(sha1.New, secret, p, 1, 16)), iv, nil
	case id.Equal(oidPBESHARC40):
		return newRC2(derivePKCS12(sha1.New, secret, p, 1, 5)), iv, nil
	}
	block, err := des.NewTripleDESCipher(derivePKCS12(sha1.New, secret, p, 1, 24))
	return block, iv, err
}

func checkIterations(n int) error {
	if n < 1 || n > iterationsMax {
		return fmt.Errorf("%d iterations of the key derivation are not between 1 and %d", n, iterationsMax)
	}
	return nil
}

// pbes2 returns the cipher of PKCS#5 version 2 with PBKDF2.
func pbes2(der, password []byte) (cipher.Block, []byte, error) {
	var p pbes2Params
	if err := unmarshal(der, &p); err != nil {
		return nil, nil, err
	}
	if p.Derivation.Algorithm.Equal(oidScrypt) {
		return nil, nil, errors.New("the key derivation scrypt is not supported, and ZooKeeper does not support it either")
	}
	if !p.Derivation.Algorithm.Equal(oidPBKDF2) {
		return nil, nil, fmt.Errorf("the key derivation %s is not supported", p.Derivation.Algorithm)
	}
	var size int
	newCipher := aes.NewCipher
	switch p.Cipher.Algorithm.String() {
	case "2.16.840.1.101.3.4.1.2":
		size = 16
	case "2.16.840.1.101.3.4.1.22":
		size = 24
	case "2.16.840.1.101.3.4.1.42":
		size = 32
	case "1.2.840.113549.3.7":
		size, newCipher = 24, des.NewTripleDESCipher
	default:
		return nil, nil, fmt.Errorf("the cipher %s is not supported", p.Cipher.Algorithm)
	}
	var iv []byte
	if err := unmarshal(p.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, nil, err
	}
	key, err := derivePBKDF2(p.Derivation.Parameters.FullBytes, password, size)
	if err != nil {
		return nil, nil, err
	}
	block, err := newCipher(key)
	return block, iv, err
}

// derivePBKDF2 derives a key of size bytes with the parameters of PBKDF2. If size is 0, the parameters
// give the size.
func derivePBKDF2(der, password []byte, size int) ([]byte, error) {
	var p pbkdf2Params
	if err := unmarshal(der, &p); err != nil {
		return nil, err
	}
	if err := checkIterations(p.Iterations); err != nil {
		return nil, err
	}
	if size == 0 {
		size = p.KeyLength
	}
	// A MAC with a short key could be guessed.
	if size < 16 || size > 64 || p.KeyLength != 0 && p.KeyLength != size {
		return nil, fmt.Errorf("a key of %d bytes does not fit the algorithm", p.KeyLength)
	}
	prf := sha1.New
	if len(p.PRF.Algorithm) > 0 {
		prf = nil
		for _, h := range hashes {
			if h.hmac.Equal(p.PRF.Algorithm) {
				prf = h.new
			}
		}
		if prf == nil {
			return nil, fmt.Errorf("the pseudo-random function %s is not supported", p.PRF.Algorithm)
		}
	}
	return pbkdf2Key(prf, password, p.Salt, p.Iterations, size), nil
}

// passphrase is the password with which a file is encrypted.
type passphrase struct {
	text []byte
	none bool // only for PKCS#12: an empty password stands for no bytes, as some tools write it
}

// pkcs12 returns the bytes from which PKCS#12 derives keys: UTF-16 that ends with a zero.
func (p passphrase) pkcs12() []byte {
	if p.none {
		return nil
	}
	return append(utf16Bytes(p.text), 0, 0)
}

// derivePKCS12 is the key derivation of RFC 7292, appendix B.2. id says what the result is used for: 1 a
// key, 2 an initialisation vector, 3 a MAC key.
func derivePKCS12(newHash func() hash.Hash, password []byte, p pbeParams, id byte, size int) []byte {
	h := newHash()
	v := h.BlockSize()
	fill := func(b []byte) []byte {
		if len(b) == 0 {
			return nil
		}
		n := (len(b) + v - 1) / v * v
		return bytes.Repeat(b, n/len(b)+1)[:n]
	}
	diversifier := bytes.Repeat([]byte{id}, v)
	salt, secret := fill(p.Salt), fill(password)
	input := append(make([]byte, 0, len(salt)+len(secret)), salt...)
	input = append(input, secret...)
	defer clear(input)
	defer clear(secret)
	var out []byte
	for {
		h.Reset()
		h.Write(diversifier)
		h.Write(input)
		a := h.Sum(nil)
		for range p.Iterations - 1 {
			h.Reset()
			h.Write(a)
			a = h.Sum(a[:0])
		}
		if out = append(out, a...); len(out) >= size {
			return out[:size]
		}
		// For each block I of the input: I = (I + B + 1) mod 2^(8v), where B consists of copies of a.
		add := new(big.Int).SetBytes(bytes.Repeat(a, v/len(a)+1)[:v])
		add.Add(add, big.NewInt(1))
		for i := 0; i < len(input); i += v {
			sum := new(big.Int).SetBytes(input[i : i+v])
			sum.Add(sum, add)
			sum.SetBit(sum, v*8, 0).FillBytes(input[i : i+v])
		}
	}
}

// checkMAC returns an error if content does not have the MAC that a PKCS#12 file gives
// for it.
func checkMAC(m macData, content []byte, password passphrase) error {
	id := m.MAC.Algorithm.Algorithm
	if id.Equal(oidPBMAC1) {
		return checkPBMAC1(m, content, password.text)
	}
	for _, h := range hashes {
		if !h.digest.Equal(id) {
			continue
		}
		if err := checkIterations(m.Iterations); err != nil {
			return err
		}
		secret := password.pkcs12()
		defer clear(secret)
		key := derivePKCS12(h.new, secret, pbeParams{m.Salt, m.Iterations}, 3, h.new().Size())
		return compareMAC(h.new, key, content, m.MAC.Digest)
	}
	return fmt.Errorf("the MAC %s is not supported", id)
}

var oidPBMAC1 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 14}

// checkPBMAC1 checks the MAC of RFC 9579.
func checkPBMAC1(m macData, content, password []byte) error {
	var p pbes2Params
	if err := unmarshal(m.MAC.Algorithm.Parameters.FullBytes, &p); err != nil {
		return err
	}
	for _, h := range hashes {
		if !h.hmac.Equal(p.Cipher.Algorithm) || !p.Derivation.Algorithm.Equal(oidPBKDF2) {
			continue
		}
		key, err := derivePBKDF2(p.Derivation.Parameters.FullBytes, password, 0)
		if err != nil {
			return err
		}
		return compareMAC(h.new, key, content, m.MAC.Digest)
	}
	return fmt.Errorf("the MAC with %s is not supported", p.Cipher.Algorithm)
}

func compareMAC(newHash func() hash.Hash, key, content, want []byte) error {
	mac := hmac.New(newHash, key)
	mac.Write(content)
	if !hmac.Equal(mac.Sum(nil), want) {
		return errPassword
	}
	return nil
}
