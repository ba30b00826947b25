// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"
)

// What kubectl prints of manifests with Certificates, where cert-manager is not installed.
func TestUnknownKinds(t *testing.T) {
	const unknown = `exit status 1: namespace/shop serverside-applied
resource mapping not found for name: "serving-cert" namespace: "shop" from "config/default": no matches for kind "Certificate" in version "cert-manager.io/v1"
ensure CRDs are installed first
resource mapping not found for name: "selfsigned-issuer" namespace: "shop" from "config/default": no matches for kind "Issuer" in version "cert-manager.io/v1"
ensure CRDs are installed first
`
	for _, tc := range []struct {
		name, complaint string
		kinds           []string
		only            bool
	}{
		{"only unknown kinds", unknown, []string{"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer"}, true},
		{"and something else", unknown + "Error from server (Forbidden): no\n", []string{"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer"}, false},
		{"something else", "exit status 1: error: the path \"a\" does not exist\n", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if kinds, only := unknownKinds(tc.complaint); !slices.Equal(kinds, tc.kinds) || only != tc.only {
				t.Errorf("got %q, %t", kinds, only)
			}
		})
	}
}
