package wire

import "fmt"

// Zxid numbers a transaction: the leader's epoch in the high 32 bits, a counter in the
// low 32. It prints in hex, as operators know it.
type Zxid int64

// Epoch numbers a leader's term.
type Epoch int64

// Code encodes or decodes the epoch as a long.
func (e *Epoch) Code(c *Coder) { c.Int64((*int64)(e)) }

// MakeZxid makes a zxid of an epoch and a counter.
func MakeZxid(e Epoch, counter uint32) Zxid { return Zxid(int64(e)<<32 | int64(counter)) }

// Epoch returns the epoch of the leader that proposed the transaction.
func (z Zxid) Epoch() Epoch { return Epoch(uint64(z) >> 32) }

// Counter returns the transaction's number within its epoch, from 1.
func (z Zxid) Counter() uint32 { return uint32(z) }

func (z Zxid) String() string { return fmt.Sprintf("0x%x", uint64(z)) }

// Code encodes or decodes the zxid as a long.
func (z *Zxid) Code(c *Coder) { c.Int64((*int64)(z)) }

// SessionID identifies a client's session; 0 is none. The high byte is the id of the
// server that made it. It prints in hex.
type SessionID int64

func (s SessionID) String() string { return fmt.Sprintf("0x%x", uint64(s)) }

// Code encodes or decodes the id as a long.
func (s *SessionID) Code(c *Coder) { c.Int64((*int64)(s)) }

// PasswordLen is the length of a session password in bytes.
const PasswordLen = 16

// Password returns the session's password. It is a pure function of the id, so that
// every server of an ensemble, Bellwether or ZooKeeper, computes the same. It is a
// checksum, not a secret (ZooKeeper uses the same generator and salt).
func (s SessionID) Password() [PasswordLen]byte {
	const (
		salt = 0xB3415C00
		mul  = 0x5DEECE66D
		mask = 1<<48 - 1
	)
	var p [PasswordLen]byte
	state := ((uint64(s) ^ salt) ^ mul) & mask
	for i := 0; i < PasswordLen; i += 4 {
		state = (state*mul + 0xB) & mask
		word := uint32(state >> 16)
		p[i], p[i+1], p[i+2], p[i+3] = byte(word), byte(word>>8), byte(word>>16), byte(word>>24)
	}
	return p
}
