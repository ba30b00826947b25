// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// method converts a Kubernetes verb for [apierrors.NewGenericServerResponse], which expects an HTTP
// method. For a conflict (409), that function derives the error's reason from the method:
// AlreadyExists for POST, and Conflict for anything else. Only the verb create is therefore
// converted.
func method(verb string) string {
	if verb == "create" {
		return http.MethodPost
	}
	return verb
}

// statusOf returns the Status that an Error or LoseAnswer fault sends in response to a request.
func statusOf(r fault.Request, f fault.Fault) metav1.Status {
	if f.Code == http.StatusGone && f.Reason == "" && f.Message == "" {
		return expired()
	}
	status := apierrors.NewGenericServerResponse(f.Code, method(r.Verb), r.GroupResource, r.Name,
		cmp.Or(f.Message, http.StatusText(f.Code)), f.RetryAfter.Seconds(), false).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Reason = metav1.StatusReason(cmp.Or(f.Reason, string(status.Reason)))
	status.Message = cmp.Or(f.Message, status.Message)
	return status
}

// answer writes an error Status as JSON, regardless of the client's Accept header. API servers also
// write JSON if an error occurs before content negotiation.
func answer(w http.ResponseWriter, status metav1.Status) {
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if after := status.Details; after != nil && after.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	// Ignore the error: Write fails only if the client has disconnected.
	_, _ = w.Write(body)
}

// expired returns the Status that rejects a watch because its resourceVersion is too old.
func expired() metav1.Status {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// noStreamingLists returns the Status that rejects a streaming list (a watch that begins with a
// list), as API servers without support for streaming lists do. Clients then send an ordinary list
// request.
func noStreamingLists(r fault.Request) metav1.Status {
	return statusOf(r, fault.Fault{Code: http.StatusUnprocessableEntity,
		Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"})
}

// notFound returns the Status that rejects a read of a missing object.
func notFound(r fault.Request) metav1.Status {
	status := apierrors.NewNotFound(r.GroupResource, r.Name).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}
