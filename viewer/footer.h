/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines under every table: how full the slots are, and how far the numbers can be trusted.
 */
#ifndef SCONCE_VIEWER_FOOTER_H
#define SCONCE_VIEWER_FOOTER_H

#include "viewer/text.h"
#include "viewer/viewer.h"

void footer_write(struct text *text, const struct viewer *viewer);

#endif
