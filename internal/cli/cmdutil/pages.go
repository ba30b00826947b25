// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is the page size of lists, the same as kubectl's.
const PageSize = 500

// EachPage reads a list page by page, for callers that keep little of each object: all objects may not fit
// into memory. If the first page has expired before the last is read, it continues with the current objects.
func EachPage[L client.ObjectList](ctx context.Context, c client.Reader, empty func() L, read func(page L), options ...client.ListOption) error {
	for token := ""; ; {
		page := empty()
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(PageSize), client.Continue(token)}, options...)...)
		if next := freshToken(err); token != "" && next != "" {
			token = next
			continue
		}
		if err != nil {
			return err
		}
		read(page)
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// freshToken returns the new continue token in the error about an expired token.
func freshToken(err error) string {
	if status := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
