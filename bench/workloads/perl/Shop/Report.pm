# SPDX-License-Identifier: Apache-2.0
package Shop::Report;
use strict;
use warnings;

sub line {
	return join("\t", 'frame', @_) . "\n";
}

# All frames below the caller's, the caller being a function of these lines.
sub chain {
	my ($first, $last) = @_;
	my @calls;
	for (my $i = 0; my @call = caller($i); $i++) {
		push @calls, {file => $call[1], line => $call[2], name => $call[3]};
	}
	my $text = '';
	my $root = $calls[-1];
	# The first of a thread is called by C.
	if ($root->{name} eq '(eval)') {
		pop @calls;
	} else {
		$text .= line('<top-level>', $root->{file}, $root->{line}, 0, 0);
	}
	for (my $i = $#calls; $i > 1; $i--) {
		my $from = $calls[$i - 1];
		$text .= line($calls[$i]{name}, $from->{file}, $from->{line}, 0, 0);
	}
	$text .= line($calls[1]{name}, $calls[0]{file}, 0, $first, $last);
	syswrite STDOUT, $text . "ready\n";
}

# Where the frames of the program may be: names, first and last lines.
sub places {
	my $text = join('', map { line($_->[0], $0, 0, $_->[1], $_->[2]) } @_);
	syswrite STDOUT, $text . "ready\n";
}

sub leaf {
	my ($sum, $first) = (0, __LINE__ - 1);
	chain($first, $first + 10);
	while (1) {
		for my $i (1 .. 1000) {
			$sum = ($sum * 31 + $i) % 65521;
			$sum ^= 1;
		}
	}
	return $sum;
}

1;
