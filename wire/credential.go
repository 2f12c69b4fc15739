package wire

import (
	"crypto/sha1"
	"encoding/base64"
	"strings"
)

// DigestID returns the id of the scheme digest for the text user:password: the part
// before the first colon, a colon, and the base64 SHA-1 of the text. Text that is not
// UTF-8 is decoded first, as servers do; see UTF8.
func DigestID(userPassword string) string {
	userPassword = UTF8([]byte(userPassword))
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}
