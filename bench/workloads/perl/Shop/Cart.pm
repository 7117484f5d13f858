# SPDX-License-Identifier: Apache-2.0
package Shop::Cart;
use strict;
use warnings;
use List::Util ();
use overload '+' => \&plus, 'fallback' => 1;

sub new {
	my ($class, $next) = @_;
	return bless {next => $next}, $class;
}

sub total {
	my ($self, $depth) = @_;
	return $self->total($depth - 1) if $depth;
	my $run = sub {
		return $self->caught(@_);
	};
	return $run->(1);
}

sub caught {
	my ($self) = @_;
	my $done = eval {
		sort_prices($self);
	};
	return $done;
}

sub sort_prices {
	my ($self) = @_;
	my @prices = sort { by_price($self, $a, $b) } 2, 1;
	return \@prices;
}

sub by_price {
	my ($self, $left, $right) = @_;
	my @sums = map {
		$self + $_;
	} $left;
	return $sums[0];
}

# In an overloaded operation, which C calls: eval needs a loop of its own, that goes on with the sub.
sub plus {
	my ($self, $other) = @_;
	eval { die "no\n" };
	tie my $value, 'Shop::Cart::Value', $self;
	return "$value";
}

sub first_of {
	my ($self) = @_;
	return List::Util::first { look_in($self, $_) } 7;
}

sub look_in {
	my ($self, $value) = @_;
	return eval q{
		package Shop::Text;
		sub compiled {
			my ($self) = @_;
			return Shop::Cart::destroyed($self);
		}
		compiled($self);
	};
}

sub destroyed {
	my ($self) = @_;
	my $guard = bless [$self], 'Shop::Cart::Guard';
	undef $guard;
	return 0;
}

package Shop::Cart::Value;

sub TIESCALAR {
	my ($class, $cart) = @_;
	return bless [$cart], $class;
}

sub FETCH {
	my ($self) = @_;
	my $found = eval {
		$self->[0]->first_of;
	};
	return $found;
}

package Shop::Cart::Guard;

sub DESTROY {
	my ($self) = @_;
	$self->[0]{next}->('leaf');
}

1;
