// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// EnterPage exchanges the one-time code in a kubectl tide dashboard link for a token, as a browser
// tab does. It returns the page's address and the token.
func EnterPage(t *testing.T, link string) (base, token string) {
	t.Helper()
	base, code, found := strings.Cut(strings.TrimSpace(link), "/#")
	if !found || len(code) != 43 {
		t.Fatalf("kubectl tide dashboard prints %q, want a link with a code", link)
	}
	token, err := spendCode(t, base, code)
	if err != nil {
		t.Fatal(err)
	}
	return base, token
}

// spendCode exchanges a one-time code for a token of the page at `base`.
func spendCode(t *testing.T, base, code string) (string, error) {
	t.Helper()
	body := fmt.Sprintf(`{"code":%q}`, code)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/-/enter", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var given struct{ Token string }
	if err := json.NewDecoder(answer.Body).Decode(&given); err != nil {
		return "", fmt.Errorf("the code of the page is answered with %s: %w", answer.Status, err)
	}
	return given.Token, nil
}
