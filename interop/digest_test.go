package interop

import (
	"strings"
	"testing"

	"bellwether/internal/sasl"
	"bellwether/interop/target"
)

// TestDigestKazoo: the server side of DIGEST-MD5 accepts kazoo's client, which writes its directives
// in another order than Java and hashes without a charset. Kazoo's client accepts the server's proof.
func TestDigestKazoo(t *testing.T) {
	target.File(t, debianPython, "python3-kazoo")
	target.File(t, "/usr/lib/python3/dist-packages/puresasl/client.py", "python3-pure-sasl")
	users := sasl.NewDigestUsers(sasl.ClientService, map[string]sasl.Secret{"bob": sasl.NewSecret("bobsecret"), `a"b\c`: sasl.NewSecret("x y,z=")})
	for _, x := range []struct{ user, password, want string }{
		{"bob", "bobsecret", ""},
		{"bob", "guessed", "wrong password"},
		{"mallory", "bobsecret", "there is no user"},
	} {
		a := sasl.NewDigestServer(users, (&sasl.Naming{}).Authorize, "")
		err := acceptProcess(t, a, debianPython, "-B", "sasl/digest.py", x.user, x.password)
		switch {
		case x.want == "" && (err != nil || a.AuthorizationID() != x.user):
			t.Errorf("%s: %v, id %q", x.user, err, a.AuthorizationID())
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s with %s: %v, want %s", x.user, x.password, err, x.want)
		}
	}
}
