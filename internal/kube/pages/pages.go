// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads large lists of objects page by page.
package pages

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Size is the number of objects per page of a list, as in kubectl.
const Size = 500

// Each reads a list page by page, because all objects together may not fit into memory. It
// calls read for each page. If the continue token expires, it reads the remaining pages at the
// latest resource version.
func Each[L client.ObjectList](ctx context.Context, c client.Reader, empty func() L, read func(page L), options ...client.ListOption) error {
	for token := ""; ; {
		page := empty()
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(Size), client.Continue(token)}, options...)...)
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

// freshToken returns the new continue token in the API server's error about an expired token. It is
// "" for other errors.
func freshToken(err error) string {
	if status := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
