//! Owns the one test binary of the plane: every row of the contract, through the router and without a socket. The test
//! runner drives it. It must not know the plane's insides.

mod access;
mod claiming;
mod deciding;
mod durability;
mod filing;
mod handshake;
mod model;
mod reading;
mod scene;
mod settling;
mod tokens;
mod waiting;
