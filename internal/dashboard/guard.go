// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody is the maximum size of a request body.
const maxBody = 64 << 10

// bodyLimit is the time limit for a client to send the request body.
const bodyLimit = 5 * time.Second

// NewToken returns a secret of 32 random bytes, encoded as a string.
func NewToken() string {
	bytes := make([]byte, 32)
	_, _ = rand.Read(bytes) // rand.Read never fails.
	return base64.RawURLEncoding.EncodeToString(bytes)
}

// policy is the Content-Security-Policy of every response. It only allows scripts and styles from
// this server. The only Trusted Types policy that may create HTML is the policy defined by the
// page's script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"require-trusted-types-for 'script'; trusted-types tide; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// headers lists the security headers of every response.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// isOurHost reports whether a Host header is localhost, 127.0.0.1 or [::1]. Other names are
// rejected even if they resolve to this machine, because an attacker may own the name. Any port is
// accepted, because ssh -L may forward another port.
func isOurHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = host // The Host header contains no port.
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return false
	}
	if err == nil && strings.HasPrefix(host, "[") {
		name = "[" + name + "]"
	}
	return name == "127.0.0.1" || name == "localhost" || name == "[::1]"
}

// isOurOrigin reports whether a request does not come from another website. Browsers send the
// header Origin, Sec-Fetch-Site, or both; other clients send neither. Other websites may only
// navigate to the shell, the HTML document without data.
func isOurOrigin(r *http.Request, isShell bool) bool {
	if origin := r.Header.Values("Origin"); len(origin) > 0 && (len(origin) > 1 || origin[0] != "http://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
		return true
	}
	return isShell && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// isShell reports whether the response to a path is the shell, or the error message for a
// nonexistent page.
func isShell(path string) bool {
	return !strings.HasPrefix(path, "/-/") && !strings.HasSuffix(path, ".json")
}

// guard wraps the handler of all requests. It rejects requests whose Host header does not name this
// machine, and requests from other websites. It also adds the security headers to all responses.
func guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		post := r.Method == http.MethodPost
		switch {
		case !isOurHost(r.Host):
			w.WriteHeader(http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !post:
			w.Header().Set("Allow", "GET, HEAD, POST")
			w.WriteHeader(http.StatusMethodNotAllowed)
		case !isOurOrigin(r, isShell(r.URL.Path)), post && cross.Check(r) != nil:
			w.WriteHeader(http.StatusForbidden)
		default:
			if post {
				// Close the connection of a client that does not send the body in time. The error
				// is ignored, because the response recorders in tests do not support deadlines.
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit))
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}
