// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AskHeader is a header of CONNECT requests. It makes the simulated kubelet authorize each request
// in the tunnel with the request's bearer token. Tunnels without this header come from the API
// server, which has already authorized their requests.
const AskHeader = "Sandbox-Ask-For-Rights"

// tunnelKey is the context key under which the tunnel of a request is stored.
type tunnelKey struct{}

// withTunnel stores a connection's tunnel in the context of its requests.
func withTunnel(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, tunnelKey{}, c)
}

// hostOf returns the name or address of the node that a request was sent to.
func hostOf(ctx context.Context) string {
	if t, ok := ctx.Value(tunnelKey{}).(*tunnel); ok {
		return t.host
	}
	return ""
}

// guarded authorizes requests from tunnels opened with AskHeader, which come from the user's
// programs. Such programs may only read the resource metrics of nodes, and only if RBAC allows it.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok && t.ask {
			if status, err := s.mayRead(r, t.host); err != nil {
				http.Error(w, err.Error(), status)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mayRead returns an error and its HTTP status code unless the user of the request's token has the
// permission that a kubelet requires: get nodes/metrics.
func (s *server) mayRead(r *http.Request, host string) (int, error) {
	if r.URL.Path != resourceMetricsPath {
		return http.StatusForbidden, fmt.Errorf("programs may only ask kubelets for %s", resourceMetricsPath)
	}
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return http.StatusUnauthorized, fmt.Errorf("a token is needed")
	}
	review, err := s.client.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case !review.Status.Authenticated:
		return http.StatusUnauthorized, fmt.Errorf("the token is not valid: %s", review.Status.Error)
	}
	n, err := s.meters.nodeNamed(r.Context(), s.client, host)
	if err != nil {
		return http.StatusNotFound, err
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "metrics", Name: n.Name},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case !access.Status.Allowed:
		return http.StatusForbidden, fmt.Errorf("%s may not get nodes/metrics", user.Username)
	}
	return 0, nil
}
