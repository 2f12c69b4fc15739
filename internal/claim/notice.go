package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bellwether/wire"
)

// noticeMax bounds the LEADER data that is looked at, in bytes.
const noticeMax = 64 << 10

// Notice is what a leader writes into its LEADER znode, as a JSON object of
// three strings: id, bid (the bid's name) and token (hex, with 0x).
type Notice struct {
	ID    string
	Bid   string
	Token wire.Zxid
}

type noticeJSON struct {
	ID    string `json:"id"`
	Bid   string `json:"bid"`
	Token string `json:"token"`
}

// Encode is the znode's data.
func (n Notice) Encode() []byte {
	b, err := json.Marshal(noticeJSON{n.ID, n.Bid, n.Token.String()})
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %v: %v", n, err)) // three strings always encode
	}
	return b
}

// DataError: a znode holds what is not its recipe's. Nothing was done with it.
type DataError struct {
	Path string
	Err  error // what is wrong with it
}

func (e *DataError) Error() string {
	return fmt.Sprintf("%s holds what is not this recipe's: %v", e.Path, e.Err)
}

// Unwrap is what is wrong with the data.
func (e *DataError) Unwrap() error { return e.Err }

// errForeign is for data that no leader of ours wrote.
var errForeign = errors.New("not written by a leader of this recipe")

// ParseNotice reads the data of a LEADER znode. An error means that somebody
// else wrote it.
func ParseNotice(data []byte) (Notice, error) {
	if len(data) > noticeMax {
		return Notice{}, errForeign
	}
	var n noticeJSON
	if json.Unmarshal(data, &n) != nil || n.Bid == "" || strings.Contains(n.Bid, "/") {
		return Notice{}, errForeign
	}
	hex, ok := strings.CutPrefix(n.Token, "0x")
	token, err := strconv.ParseInt(hex, 16, 64)
	if !ok || err != nil || token <= 0 {
		return Notice{}, errForeign
	}
	return Notice{ID: n.ID, Bid: n.Bid, Token: wire.Zxid(token)}, nil
}

// NoticeOf is what a LEADER znode says; empty where no leader of ours made it,
// as its session's own.
func NoticeOf(data []byte, stat wire.Stat) Notice {
	n, err := ParseNotice(data)
	if err != nil || stat.EphemeralOwner == 0 {
		return Notice{}
	}
	return n
}
